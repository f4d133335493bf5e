"""Command-line options and how they are parsed."""
