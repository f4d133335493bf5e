"""Run the paper's experiments on its data or on yours."""
