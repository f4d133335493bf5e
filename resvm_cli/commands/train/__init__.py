"""resvm train."""
