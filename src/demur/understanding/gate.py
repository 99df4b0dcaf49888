"""Two-stage understanding: first whether a text belongs to the domain at all, then what it means (Patel et al. 2006).

The first stage is a naive Bayes classifier of two classes, trained on texts of the domain and on others. It knows
nothing of the answers, so it can be set before any interpreter, and its confidence draws an error-return curve that
may be held against the one of the interpreter's own confidence.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.errors import DataError, UsageError
from demur.understanding.tokens import Tokenizer, parts_of, tokenizer

Counts = NDArray[np.int64]
Unknown = Literal["against", "ignored"]

KIND = "gate"
"""What the state of a gate says it is."""


class DomainGate:
    """Tells texts of a domain from others by their tokens.

    `tokens` says what texts are made of, as in `demur.understanding.tokens`; of a mixture, the log odds are averaged.
    `smoothing` is added to the count of every token in either class, and in either class there is one more token, for
    all that were never seen: a tenth, because the texts out of the domain are few as a rule, and a whole count would
    drown them. `prior` is the chance, before anything is read, that a text is in the domain: even odds, because how
    many texts of each class somebody wrote does not tell how many will come. `unknown` says what a token counts that
    neither class has: `against` the domain, by what the smoothing gives it but never for it, because a domain is
    closed and the rest of the world is not; or `ignored`, so that a text of unknown words only is as likely as the
    prior says. What counts is the mean log odds of a token, else long texts would be surer than short ones.

    >>> gate = DomainGate().fit(["when do you open", "when do you close"], ["what is the capital of france"])
    >>> [round(one, 2) for one in gate.confidence(["when do you open on sundays", "is it the capital", ""]).tolist()]
    [0.84, 0.11, 0.5]
    """

    def __init__(
        self, *, tokens: str = "words", smoothing: float = 0.1, prior: float = 0.5, unknown: Unknown = "against"
    ) -> None:
        if not 0 < smoothing < math.inf:
            raise UsageError(f"smoothing must be above 0; got {smoothing}")
        if not 0 < prior < 1:
            raise UsageError(f"prior must be between 0 and 1, both excluded; got {prior}")
        if unknown not in get_args(Unknown):
            raise UsageError(f'unknown must be one of {", ".join(get_args(Unknown))}; got "{unknown}"')
        self.tokens = tokens
        self.smoothing = smoothing
        self.prior = prior
        self.unknown = unknown
        self._bags: tuple[_Bag, ...] = ()

    def fit(self, in_domain: Sequence[str], out_of_domain: Sequence[str]) -> Self:
        """Learns from texts of the domain and from others; of either at least one must have a token."""
        _refuse_one_text(in_domain, out_of_domain)
        self._bags = tuple(
            _Bag.learnt(tokenizer(part), in_domain, out_of_domain, self.smoothing, self.unknown)
            for part in parts_of(self.tokens)
        )
        return self

    def decision_function(self, texts: Sequence[str]) -> Array:
        """Log odds that each text is in the domain: the mean over its tokens, plus the log odds of the prior."""
        _refuse_one_text(texts)
        if not self._bags:
            raise UsageError("the gate has learnt nothing yet: call fit(in_domain, out_of_domain) first")
        odds = np.mean([bag.log_odds(texts) for bag in self._bags], axis=0)
        return np.asarray(odds + math.log(self.prior / (1 - self.prior)), dtype=np.float64)

    def confidence(self, texts: Sequence[str]) -> Array:
        """How sure the gate is that each text is in the domain, from 0 to 1; a text without tokens has the prior.

        It ranks texts; it is no calibrated probability, for tokens are not independent.
        """
        return np.exp(-np.logaddexp(0.0, -self.decision_function(texts)))

    def to_state(self) -> tuple[dict[str, Any], dict[str, Counts]]:
        """The gate as what can be written as JSON, and arrays; `from_state` makes it again."""
        settings = {key: getattr(self, key) for key in ("tokens", "smoothing", "prior", "unknown")}
        plain = {"kind": KIND, **settings, "vocabularies": [list(bag.vocabulary) for bag in self._bags]}
        return plain, {f"counts_{place}": bag.counts for place, bag in enumerate(self._bags)}

    @classmethod
    def from_state(cls, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The gate of a state."""
        if plain.get("kind") != KIND:
            raise DataError(f'must have the kind "{KIND}"', where="state", got=plain.get("kind"), fix=_TRAIN_AGAIN)
        missing = [key for key in ("tokens", "smoothing", "prior", "unknown", "vocabularies") if key not in plain]
        if missing:
            raise DataError(f"lacks {', '.join(missing)}", where="state of the gate", fix=_TRAIN_AGAIN)
        settings = {key: plain[key] for key in ("smoothing", "prior", "unknown")}
        gate = cls(tokens=plain["tokens"], **settings)
        parts = parts_of(gate.tokens) if plain["vocabularies"] else ()
        if len(parts) != len(plain["vocabularies"]):
            raise DataError(f"needs {len(parts)} vocabularies", where="state of the gate", fix=_TRAIN_AGAIN)
        gate._bags = tuple(
            _Bag(tokenizer(part), _numbered(words), _counts(arrays, place, len(words)), gate.smoothing, gate.unknown)
            for place, (part, words) in enumerate(zip(parts, plain["vocabularies"], strict=True))
        )
        return gate


_TRAIN_AGAIN = "train the gate again"


def two_stage(
    gate: DomainGate, answers: pl.DataFrame, *, threshold: float = 0.0, system: str = "two-stage"
) -> pl.DataFrame:
    """A table of responses of the two stages: the interpreter's predictions, let through or withheld by the gate.

    `answers` has the columns `input` and `prediction`, and whatever else responses need, which stays. `confidence`
    becomes the gate's, `system` the name given, and `prediction` null where the gate is less sure than the threshold.
    With the threshold 0 nothing is withheld, and the rows draw the whole error-return curve of the gate.

    >>> gate = DomainGate().fit(["when do you open"], ["what is the capital of france"])
    >>> answers = pl.DataFrame({"input": ["do you open", "capital of peru"], "prediction": ["hours", "hours"]})
    >>> two_stage(gate, answers, threshold=0.5)["prediction"].to_list()
    ['hours', None]
    """
    missing = [name for name in ("input", "prediction") if name not in answers.columns]
    if missing:
        rule = f"needs the column{'s' if len(missing) > 1 else ''} {' and '.join(missing)}"
        raise DataError(rule, where="the interpreter's answers", fix=f"columns there: {', '.join(answers.columns)}")
    if not 0 <= threshold <= 1:
        raise UsageError(f"threshold of the gate must be between 0 and 1; got {threshold}")
    sure = pl.Series("confidence", gate.confidence(answers["input"].cast(pl.String).fill_null("").to_list()))
    through = pl.when(pl.col("confidence") >= threshold).then(pl.col("prediction"))
    return answers.with_columns(sure, pl.lit(system).alias("system")).with_columns(through.alias("prediction"))


@dataclass(frozen=True, eq=False)
class _Bag:
    """How often each token occurs in the domain (first row) and out of it (second row)."""

    tokens: Tokenizer
    vocabulary: dict[str, int]
    counts: Counts
    smoothing: float
    unknown: Unknown

    @classmethod
    def learnt(
        cls, tokens: Tokenizer, inside: Sequence[str], outside: Sequence[str], smoothing: float, unknown: Unknown
    ) -> Self:
        seen = [Counter(token for text in texts for token in tokens(text)) for texts in (inside, outside)]
        for name, found in zip(("in", "out of"), seen, strict=True):
            if not found:
                rule = f"there is no text {name} the domain that has {tokens.name}"
                raise DataError(rule, fix="the gate needs texts of both classes to tell them apart")
        vocabulary = _numbered(sorted(seen[0].keys() | seen[1].keys()))
        counts = np.array([[found[token] for token in vocabulary] for found in seen], dtype=np.int64)
        return cls(tokens, vocabulary, counts, smoothing, unknown)

    @cached_property
    def weights(self) -> dict[str, float]:
        """Log odds of each known token."""
        smooth = np.log(self.counts + self.smoothing)
        return dict(zip(self.vocabulary, (smooth[0] - smooth[1] + self._balance).tolist(), strict=True))

    @property
    def of_unknown(self) -> float:
        """Log odds of a token that neither class has: those of the smoothing alone, and never above 0."""
        return min(self._balance, 0.0) if self.unknown == "against" else 0.0

    @property
    def _balance(self) -> float:
        """What the log odds of every token owe to one class being larger."""
        inside, outside = self.counts.sum(axis=1) + self.smoothing * (len(self.vocabulary) + 1)
        return float(np.log(outside) - np.log(inside))

    def log_odds(self, texts: Sequence[str]) -> Array:
        """Mean log odds of the tokens of each text; 0 where there are none."""
        weights, of_unknown = self.weights, self.of_unknown
        counted = ([weights.get(token, of_unknown) for token in self.tokens(text)] for text in texts)
        return np.array([sum(found) / len(found) if found else 0.0 for found in counted], dtype=np.float64)


def _numbered(words: Sequence[str]) -> dict[str, int]:
    return {word: place for place, word in enumerate(words)}


def _counts(arrays: Mapping[str, NDArray[Any]], place: int, size: int) -> Counts:
    name = f"counts_{place}"
    if name not in arrays:
        raise DataError(f"lacks the array {name}", where="state of the gate", fix=_TRAIN_AGAIN)
    counts = np.asarray(arrays[name])
    if counts.shape != (2, size):
        raise DataError(f"must have the shape {(2, size)}", where=name, got=str(counts.shape), fix=_TRAIN_AGAIN)
    if counts.dtype.kind not in "iu" or (counts < 0).any():
        raise DataError("must hold whole numbers from 0 on", where=name, fix=_TRAIN_AGAIN)
    return counts.astype(np.int64)


def _refuse_one_text(*groups: Sequence[str]) -> None:
    """Refuses a string where a list of texts is meant, which would be read as a list of letters."""
    for texts in groups:
        if isinstance(texts, str):
            raise UsageError(f'the gate takes a list of texts; got the text "{texts[:40]}"')
