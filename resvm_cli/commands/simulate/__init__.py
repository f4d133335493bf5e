"""resvm simulate."""
