"""Bytes become tables, and tables become files."""
