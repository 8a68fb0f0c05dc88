"""Random tables, predicates and pipelines, and all ways to evaluate them."""
