"""Types of arrays, and sums that tie where they are equal."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

DIGITS = 12
"""Decimal places kept of a sum of confidences, unless it is tiny."""

TINY = 1e-6


def round_sums(sums: ArrayLike) -> Array:
    """Sums without their last digits, which the order of adding and the processor move: equal sums tie.

    >>> round_sums([0.7 + 0.2 + 0.1, 0.1 + 0.2, 1e-30]).tolist()
    [1.0, 0.3, 1e-30]
    """
    exact = np.asarray(sums, dtype=np.float64)
    return np.where(exact > TINY, exact.round(DIGITS), exact)
