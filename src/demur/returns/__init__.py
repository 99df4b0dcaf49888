"""Answers that may be withheld."""
