"""The relevance model as its formulas read: every language model asked for every token, products and sums in loops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import log, prod, sqrt
from typing import Any

Tokens = list[str]
Tokenizer = Callable[[str], Tokens]


def likelihood(token: str, text: Tokens, texts: Sequence[Tokens], weight: float) -> float:
    """pi_s(w) = lam c(w, s) / |s| + (1 - lam) bg(w)."""
    own = text.count(token) / len(text) if text else 0.0
    everywhere = sum(one.count(token) for one in texts) / sum(len(one) for one in texts)
    return weight * own + (1 - weight) * everywhere


def power(texts: Sequence[str], tokenizer: Tokenizer, words: Tokenizer, sharpness: float) -> float:
    """The sharpness, times the root of how many words there are to a token; an empty text counts as one of each."""
    of_words = sum(max(len(words(text)), 1) for text in texts)
    of_tokens = sum(max(len(tokenizer(text)), 1) for text in texts)
    return sharpness * sqrt(of_words / of_tokens)


def question_weights(question: Tokens, texts: Sequence[Tokens], weight: float, power: float) -> list[float]:
    """v_s, proportional to the product of pi_s(w)^power over the tokens that were ever seen."""
    seen = {token for text in texts for token in text}
    asked = [token for token in question if token in seen]
    return shares([prod(likelihood(token, text, texts, weight) ** power for token in asked) for text in texts])


def left_out_weights(place: int, texts: Sequence[Tokens], weight: float, power: float) -> list[float]:
    """v_s of a training question without itself and its copies, which stay in the background."""
    found = question_weights(texts[place], texts, weight, power)
    kept = [0.0 if Counter(text) == Counter(texts[place]) else v for text, v in zip(texts, found, strict=True)]
    return shares(kept) if any(kept) else [1 / len(texts)] * len(texts)


def shares(weights: Sequence[float]) -> list[float]:
    return [weight / sum(weights) for weight in weights]


def by_label(weights: Sequence[float], labels: Sequence[Any]) -> list[float]:
    """The posterior of each label, in their order."""
    pairs = list(zip(weights, labels, strict=True))
    return [sum(weight for weight, one in pairs if one == label) for label in sorted(set(labels))]


def mean(posteriors: Sequence[Sequence[float]]) -> list[float]:
    """What several kinds of token say on average."""
    return [sum(values) / len(posteriors) for values in zip(*posteriors, strict=True)]


def posterior(
    question: str,
    texts: Sequence[str],
    labels: Sequence[Any],
    tokenizers: Sequence[Tokenizer],
    words: Tokenizer,
    *,
    weight: float,
    sharpness: float,
) -> list[float]:
    found = []
    for tokenizer in tokenizers:
        sharp = power(texts, tokenizer, words, sharpness)
        told = [tokenizer(text) for text in texts]
        found.append(by_label(question_weights(tokenizer(question), told, weight, sharp), labels))
    return mean(found)


def left_out(
    place: int,
    texts: Sequence[str],
    labels: Sequence[Any],
    tokenizers: Sequence[Tokenizer],
    words: Tokenizer,
    *,
    weight: float,
    sharpness: float,
) -> list[float]:
    found = []
    for tokenizer in tokenizers:
        sharp = power(texts, tokenizer, words, sharpness)
        told = [tokenizer(text) for text in texts]
        found.append(by_label(left_out_weights(place, told, weight, sharp), labels))
    return mean(found)


def answer_tokens(labels: Sequence[Any], answers: Mapping[Any, str] | None, words: Tokenizer) -> list[Tokens]:
    """The tokens of each answer; one without words is a token of its own."""
    told = ["" if answers is None else answers.get(label, "") for label in labels]
    return [words(text) or [f"<{label}>"] for label, text in zip(labels, told, strict=True)]


def scores(posterior: Sequence[float], answers: Sequence[Tokens], *, weight: float, divergence: bool) -> list[float]:
    """Sum over a of P(a|Q) log pi_Ak(a), for the divergence less P(a|Q) log P(a|Q); each answer counts once in bg."""
    vocabulary = {token for answer in answers for token in answer}
    found = []
    for answer in answers:
        total = 0.0
        for token in vocabulary:
            likely = sum(
                share * likelihood(token, one, answers, weight) for share, one in zip(posterior, answers, strict=True)
            )
            total += likely * log(likelihood(token, answer, answers, weight))
            total -= likely * log(likely) if divergence else 0.0
        found.append(total)
    return found
