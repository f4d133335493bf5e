"""Dask as an engine for tasks."""
