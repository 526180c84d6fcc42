"""Passes of the host level: who owns which memory, for how long, and what runs in one native call."""
