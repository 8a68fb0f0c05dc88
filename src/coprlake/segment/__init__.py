"""How is a run of records written, found at once, and sealed into a data file with its sketch?"""
