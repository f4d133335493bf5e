"""resvm predict."""
