"""A searchable compression dictionary in the manner of CLP and LogGrep (paper 2.3)."""
