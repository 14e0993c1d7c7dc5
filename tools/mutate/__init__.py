"""Mutation testing: `make mutate SEED=n` changes the source in 150 places and counts the changes that the tests catch."""
