"""How good a ranking is: with true labels, with positive and unlabeled rows only, and over runs."""
