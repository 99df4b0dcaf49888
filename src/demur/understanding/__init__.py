"""A classifier that may not understand."""
