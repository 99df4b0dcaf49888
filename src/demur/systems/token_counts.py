"""Texts as counts of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.systems.tokens import Tokenizer

Vocabulary = dict[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class TokenCounts:
    """How often each token (column) occurs in each text (row)."""

    matrix: Any
    """Sparse, by rows."""
    lengths: NDArray[np.float64]
    """Tokens of each text, unknown ones included; at least 1."""
    vocabulary: Vocabulary

    @property
    def background(self) -> NDArray[np.float64]:
        """The share of each token in all texts."""
        total = np.asarray(self.matrix.sum(axis=0), dtype=np.float64).ravel()
        return np.asarray(total / total.sum()) if total.sum() else total

    def same_as(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each of some texts (numbered from 0), the texts with the same counts, itself among them."""
        keys = self._keys()
        members: dict[bytes, list[int]] = {}
        for place, key in enumerate(keys):
            members.setdefault(key, []).append(place)
        pairs = [(row, place) for row, text in enumerate(rows) for place in members[keys[text]]]
        found = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        return found[:, 0], found[:, 1]

    def shared(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some texts have a token that another text has too, copies of it aside."""
        if not len(rows):
            return np.zeros(0, dtype=bool)
        copies = np.bincount(self.same_as(rows)[0], minlength=len(rows))
        mine = self.matrix[rows]
        total = np.asarray(self.matrix.sum(axis=0)).ravel()
        row = np.repeat(np.arange(len(rows)), np.diff(mine.indptr))
        elsewhere = total[mine.indices] - copies[row] * mine.data > 0
        return np.asarray(np.bincount(row[elsewhere], minlength=len(rows)) > 0)

    def _keys(self) -> list[bytes]:
        ends = self.matrix.indptr
        return [
            self.matrix.indices[start:stop].tobytes() + self.matrix.data[start:stop].tobytes()
            for start, stop in pairwise(ends)
        ]


def counted(texts: Sequence[str], tokens: Tokenizer, vocabulary: Vocabulary | None = None) -> TokenCounts:
    """Texts as counts; without a vocabulary every token found becomes part of one."""
    from scipy.sparse import csr_array

    learning = vocabulary is None
    known: Vocabulary = {} if vocabulary is None else vocabulary
    ends, columns, lengths = [0], [], []
    for text in texts:
        found = tokens(text)
        lengths.append(max(len(found), 1))
        if learning:
            columns += [known.setdefault(token, len(known)) for token in found]
        else:
            columns += [known[token] for token in found if token in known]
        ends.append(len(columns))
    shape = (len(texts), len(known))
    matrix = csr_array((np.ones(len(columns)), np.array(columns, dtype=np.int64), np.array(ends)), shape=shape)
    matrix.sum_duplicates()
    return TokenCounts(matrix, np.array(lengths, dtype=np.float64), known)
