"""The paper's experiments, on its data or yours."""
