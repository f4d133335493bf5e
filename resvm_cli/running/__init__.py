"""Threads, signals and array tasks."""
