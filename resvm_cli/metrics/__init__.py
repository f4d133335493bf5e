"""Ranking metrics, with confidence intervals."""
