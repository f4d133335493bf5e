"""Metrics of rankings, with confidence intervals and significance tests."""
