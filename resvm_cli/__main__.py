"""Entry point of ``python -m resvm_cli``."""

from resvm_cli.cli import program

if __name__ == "__main__":
    program()
