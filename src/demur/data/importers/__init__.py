"""Corpora in formats of others become rows of the project's own; one format a module."""
