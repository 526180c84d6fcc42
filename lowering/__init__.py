"""Rewrite patterns and passes, within a level and between levels. Knows the dialects only: no torch, no target."""
