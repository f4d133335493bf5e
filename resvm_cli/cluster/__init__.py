"""Run tasks on a Dask cluster."""
