"""Which segments make up a table, and how does that set change without losing a record?"""
