"""Convert the columns of a table to features."""
