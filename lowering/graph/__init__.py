"""Rewrites within the graph level."""
