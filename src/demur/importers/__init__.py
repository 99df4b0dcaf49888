"""Logs in formats of other tools; one file per format."""
