"""What a match makes necessary: the tokens that a batch must contain."""
