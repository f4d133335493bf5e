"""What a person or a program sees: renders results, writes no files."""
