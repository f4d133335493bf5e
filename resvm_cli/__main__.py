"""Entry point of ``python -m resvm_cli``."""

from resvm_cli.cli import main

if __name__ == "__main__":
    main()
