"""Two-stage understanding: first whether a text belongs to the domain at all, then what it means (Patel et al. 2006).

The first stage is a naive Bayes classifier of two classes, trained on texts of the domain and on others. It knows
nothing of the answers, so it can be set before any interpreter, and its confidence draws an error-return curve that
may be held against the one of the interpreter's own confidence.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self, get_args

import numpy as np
import polars as pl

from demur.core.arrays import Array
from demur.errors import DataError, UsageError
from demur.understanding.tokens import Tokenizer, parts_of, tokenizer

Unknown = Literal["against", "ignored"]


@dataclass(frozen=True, slots=True)
class _TokenOdds:
    """Log odds of each known token to be of the domain, and those of a token that neither class has."""

    tokens: Tokenizer
    known: dict[str, float]
    unknown: float

    def mean(self, text: str) -> float:
        """Mean log odds of the tokens of a text; 0 where there are none."""
        odds = [self.known.get(token, self.unknown) for token in self.tokens(text)]
        return sum(odds) / len(odds) if odds else 0.0


class DomainGate:
    """Tells texts of a domain from others by their tokens.

    `tokens` says what texts are made of, as in `demur.understanding.tokens`; of a mixture, the log odds are averaged.
    `smoothing` is added to the count of every token in either class, and in either class there is one more token, for
    all that were never seen: a tenth, because the texts out of the domain are few as a rule, and a whole count would
    drown them. `prior` is the chance, before anything is read, that a text is in the domain: even odds, because how
    many texts of each class somebody wrote does not tell how many will come. `unknown` says what a token counts that
    neither class has: `against` the domain, by what the smoothing gives it but never for it, because a domain is
    closed and the rest of the world is not; or `ignored`, so that a text of unknown words only is as likely as the
    prior says. What counts is the mean log odds of a token, otherwise long texts would be surer than short ones.

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
        self._odds: tuple[_TokenOdds, ...] = ()

    def fit(self, in_domain: Sequence[str], out_of_domain: Sequence[str]) -> Self:
        """Learns from texts of the domain and from others; of either at least one must have a token."""
        _refuse_one_text(in_domain, out_of_domain)
        self._odds = tuple(self._learn(tokenizer(part), in_domain, out_of_domain) for part in parts_of(self.tokens))
        return self

    def _learn(self, tokens: Tokenizer, *classes: Sequence[str]) -> _TokenOdds:
        seen = [Counter(token for text in texts for token in tokens(text)) for texts in classes]
        for name, counter in zip(("in", "out of"), seen, strict=True):
            if not counter:
                rule = f"there is no text {name} the domain that has {tokens.name}"
                raise DataError(rule, fix="the gate needs texts of both classes to tell them apart")
        vocabulary = sorted(seen[0].keys() | seen[1].keys())
        counts = np.array([[counter[token] for token in vocabulary] for counter in seen], dtype=np.int64)
        # what the log odds of every token owe to one class being larger
        inside, outside = counts.sum(axis=1) + self.smoothing * (len(vocabulary) + 1)
        balance = float(np.log(outside) - np.log(inside))
        smooth = np.log(counts + self.smoothing)
        known = dict(zip(vocabulary, (smooth[0] - smooth[1] + balance).tolist(), strict=True))
        return _TokenOdds(tokens, known, min(balance, 0.0) if self.unknown == "against" else 0.0)

    def decision_function(self, texts: Sequence[str]) -> Array:
        """Log odds that each text is in the domain: the mean over its tokens, plus the log odds of the prior."""
        _refuse_one_text(texts)
        if not self._odds:
            raise UsageError("the gate has learnt nothing yet: call fit(in_domain, out_of_domain) first")
        odds = np.mean([[one.mean(text) for text in texts] for one in self._odds], axis=0)
        return np.asarray(odds + math.log(self.prior / (1 - self.prior)), dtype=np.float64)

    def confidence(self, texts: Sequence[str]) -> Array:
        """How sure the gate is that each text is in the domain, from 0 to 1; a text without tokens has the prior.

        It ranks texts; it is no calibrated probability, for tokens are not independent.
        """
        return np.exp(-np.logaddexp(0.0, -self.decision_function(texts)))


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


def _refuse_one_text(*groups: Sequence[str]) -> None:
    """Refuses a string where a list of texts is meant, which would be read as a list of characters."""
    for texts in groups:
        if isinstance(texts, str):
            raise UsageError(f'the gate takes a list of texts; got the text "{texts[:40]}"')
