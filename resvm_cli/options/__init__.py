"""How options become values."""
