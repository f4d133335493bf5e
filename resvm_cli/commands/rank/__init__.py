"""resvm rank."""
