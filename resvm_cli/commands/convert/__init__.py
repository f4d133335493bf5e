"""resvm convert."""
