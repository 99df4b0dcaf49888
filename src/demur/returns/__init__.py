"""Answers that may be withheld: which system, which threshold, is the difference real."""
