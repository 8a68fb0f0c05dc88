"""Which records match, and which tokens a batch must contain if one of its records matches."""
