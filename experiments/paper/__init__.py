"""The paper's experiments: run them, and compare the results with the published tables."""
