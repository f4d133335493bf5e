"""Model directories, and parts of a model that are trained separately."""
