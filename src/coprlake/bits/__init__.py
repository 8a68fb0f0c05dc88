"""How bits lie in memory: words, sequences, ranks and prefix sums."""
