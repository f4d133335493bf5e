"""Bags, members, decisions and out-of-bag values: everything about an ensemble except its files."""
