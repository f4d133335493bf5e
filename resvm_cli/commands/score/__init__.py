"""resvm score."""
