"""Evaluates language understanding that is allowed to say "I don't understand"."""

__version__ = "0.1.0"
