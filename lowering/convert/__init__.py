"""Conversions from one level to the next."""
