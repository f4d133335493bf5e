"""One file or folder per command: its options, its work and its report."""
