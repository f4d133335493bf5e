"""Bytes to rows: streams, svmlight, tables, encoding, P and U."""
