"""Everything that reads or writes files; no computation."""
