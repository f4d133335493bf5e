"""The Python API behind ``import resvm_cli``: estimators, functions and their results."""
