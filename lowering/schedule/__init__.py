"""Schedules: how the iterations of a kernel are laid on programs, loops and lanes."""
