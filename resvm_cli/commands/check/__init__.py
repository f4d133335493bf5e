"""resvm check."""
