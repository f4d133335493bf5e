"""The command line: words to values, options, the terminal."""
