"""Columns of a table to features."""
