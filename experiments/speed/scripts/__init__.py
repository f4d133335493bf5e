"""What a user without resvm would write: stand-alone scripts, each run as a process of its own."""
