"""Train a model on P and U."""
