"""Slices against the rest, as plainly as can be: counting row by row, and probabilities as exact fractions."""

from fractions import Fraction
from math import comb


def fisher(hits, drawn, marked, total):
    """Two-sided exact p-value: all tables at most as likely as the one seen."""

    def likelihood(count):
        return Fraction(comb(marked, count) * comb(total - marked, drawn - count), comb(total, drawn))

    seen = likelihood(hits)
    counts = range(max(0, drawn + marked - total), min(drawn, marked) + 1)
    return float(sum(likelihood(count) for count in counts if likelihood(count) <= seen))


def rate(rows, event):
    """Share of rows, by weight, of which something is true."""
    return sum(row["weight"] for row in rows if event(row)) / sum(row["weight"] for row in rows)


def is_error(threshold):
    return lambda row: row["confidence"] is not None and row["confidence"] >= threshold and not row["right"]


def is_withheld(threshold):
    return lambda row: row["confidence"] is None or row["confidence"] < threshold


def area(rows):
    """AUGRC by its definition: for pairs of rows, a wrong answer ranked above an answered row; ties count half."""
    total = sum(row["weight"] for row in rows)
    found = 0.0
    for one in rows:
        if one["confidence"] is None or one["right"]:
            continue
        for other in rows:
            if other["confidence"] is not None:
                below = (other["confidence"] < one["confidence"]) + (other["confidence"] == one["confidence"]) / 2
                found += one["weight"] * other["weight"] * below
    return found / total**2
