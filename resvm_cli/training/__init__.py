"""From P and U to a model."""
