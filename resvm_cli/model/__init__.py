"""Bags, members, decisions, out of bag: everything about an ensemble but its files."""
