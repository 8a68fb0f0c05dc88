"""What does each command do with the records of the one before it?"""
