"""Plain intent classifiers for the demo: scikit-learn pipelines, trained when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from demur.errors import UsageError

NAMES = ("word-lr", "char-lr", "nearest")
"""word-lr: TF-IDF of words and word pairs into logistic regression. char-lr: the same on character n-grams.
nearest: the most similar training question, with its cosine as confidence, which is no probability."""


def respond(
    name: str, train_inputs: Sequence[str], train_targets: Sequence[str], inputs: Sequence[str]
) -> tuple[list[str], list[float]]:
    """Train the named classifier and give its prediction and confidence for each input."""
    pipeline = _pipeline(name)
    pipeline.fit(list(train_inputs), list(train_targets))
    if name == "nearest":
        distance, place = pipeline[-1].kneighbors(pipeline[:-1].transform(list(inputs)), n_neighbors=1)
        labels = np.asarray(train_targets)[place[:, 0]]
        return labels.tolist(), (1 - distance[:, 0]).clip(0, 1).tolist()
    probabilities = pipeline.predict_proba(list(inputs))
    return pipeline.classes_[probabilities.argmax(axis=1)].tolist(), probabilities.max(axis=1).tolist()


def respond_all(train: pl.DataFrame, test: pl.DataFrame) -> pl.DataFrame:
    """The responses of every classifier to the test rows, as a table of responses."""
    parts = []
    for name in NAMES:
        prediction, confidence = respond(
            name, train["input"].to_list(), train["target"].to_list(), test["input"].to_list()
        )
        answers = pl.Series("prediction", prediction), pl.Series("confidence", confidence)
        parts.append(test.with_columns(pl.lit(name).alias("system"), *answers))
    return pl.concat(parts)


def _pipeline(name: str) -> Any:
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.neighbors import KNeighborsClassifier
        from sklearn.pipeline import make_pipeline
    except ImportError:
        raise UsageError("the demo's classifiers need scikit-learn: pip install 'demur[demo]'") from None
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\b\w+\b")
    characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True)
    if name == "word-lr":
        return make_pipeline(words, LogisticRegression(C=20, max_iter=1000))
    if name == "char-lr":
        return make_pipeline(characters, LogisticRegression(C=20, max_iter=1000))
    if name == "nearest":
        return make_pipeline(words, KNeighborsClassifier(n_neighbors=1, metric="cosine"))
    raise UsageError(f'the demo has the classifiers {", ".join(NAMES)}; got "{name}"')
