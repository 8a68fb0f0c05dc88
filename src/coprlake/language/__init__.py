"""What does a query say, and how do two engines say the same?"""
