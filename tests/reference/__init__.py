"""Slow plain twins of the fast algorithms, written from the definitions and in exact arithmetic where there is one."""
