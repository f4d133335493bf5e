"""Many SVMs as one: bags, methods, fitting, votes."""
