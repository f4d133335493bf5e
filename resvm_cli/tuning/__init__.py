"""Choosing hyperparameters: candidates, their scores, and the search."""
