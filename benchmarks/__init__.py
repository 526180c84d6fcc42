"""Stepwell against eager and Inductor: `python -m stepwell.benchmarks`. Not part of what is installed."""
