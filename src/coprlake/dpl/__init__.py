"""What does a pattern find in a text?"""
