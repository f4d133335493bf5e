"""One file per command: where files meet numbers."""
