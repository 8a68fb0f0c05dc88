"""Which functions are there, what do they mean, and how does each engine say it?"""
