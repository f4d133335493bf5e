"""One file per command: options in, one job called, its result to report."""
