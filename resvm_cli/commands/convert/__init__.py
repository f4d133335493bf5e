"""The resvm convert command."""
