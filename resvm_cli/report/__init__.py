"""Render results for people and programs, without writing files."""
