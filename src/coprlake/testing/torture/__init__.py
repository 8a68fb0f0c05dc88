"""Ways to damage a table on purpose, one module each; `benchmarks.torture` runs them for as long as you like.

Every module has a function ``run(seed, seconds, folder, cases=None) -> Outcome``. It stops after `seconds` or
`cases` cases, whichever comes first. The same seed and number of cases give the same cases.
"""
