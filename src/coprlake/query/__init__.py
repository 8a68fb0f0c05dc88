"""Which records match, in which order, and what did it take to find out?"""
