"""Charts of answers that may be withheld."""
