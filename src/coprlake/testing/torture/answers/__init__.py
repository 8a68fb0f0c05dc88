"""Random tables, predicates and pipelines, and all the ways to answer them."""
