"""What is measured of a ranking."""
