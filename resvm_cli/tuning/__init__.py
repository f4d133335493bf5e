"""Choosing hyperparameters: what to try, how to judge it, how to go on."""
