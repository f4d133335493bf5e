"""resvm inspect."""
