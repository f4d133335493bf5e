"""resvm tune."""
