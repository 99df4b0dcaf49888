"""Runs that were added, kept whole: a folder each, and an index that can be made again from them."""
