"""The quality studies behind docs/quality.md, docs/ranking.md and docs/tuning.md."""
