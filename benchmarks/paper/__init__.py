"""What does the paper's evaluation (section 5) give, run again on one machine, with today's peers beside it?"""
