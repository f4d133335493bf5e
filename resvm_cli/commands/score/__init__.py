"""The resvm score command."""
