"""The model directory, its members, and parts of a model."""
