"""The same jobs as the commands, for Python: from files and frames to results."""

from demur.api.answers import aim, classes, compare, merge, one_system, one_tally, read, score, threshold
from demur.api.lists import compare_nbest, nbest, read_nbest

__all__ = [
    "aim",
    "classes",
    "compare",
    "compare_nbest",
    "merge",
    "nbest",
    "one_system",
    "one_tally",
    "read",
    "read_nbest",
    "score",
    "threshold",
]
