"""All questions on one page."""
