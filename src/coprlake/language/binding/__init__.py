"""How does what was written become a typed expression?"""
