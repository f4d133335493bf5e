"""The studies behind docs/quality.md."""
