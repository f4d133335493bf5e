"""The model directory and parts of it."""
