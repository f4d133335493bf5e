"""Options that several commands share: families of them, each declared and folded once."""
