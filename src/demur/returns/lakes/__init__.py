"""Slices and single rows of logs that an engine holds."""
