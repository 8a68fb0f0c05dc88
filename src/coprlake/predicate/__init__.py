"""Which records match, and which tokens must a batch have for it?"""
