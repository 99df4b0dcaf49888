"""From recognised sentences to dialogue acts with confidences (Thomson et al. 2008, section 4)."""

from __future__ import annotations

import math
import shlex
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from demur.core.acts import Slot, parse_acts
from demur.core.arrays import round_sums
from demur.core.shell import command_words
from demur.errors import DataError, UsageError
from demur.nbest_lists.asr.grammar import Grammar, bundled
from demur.nbest_lists.asr.networks import Sentence, nbest, network_of
from demur.nbest_lists.asr.networks import sentences_of as listed_sentences

Parse: TypeAlias = Callable[[str], str]
"""From a sentence to the text of its acts, such as `inform(food=thai)&bye()`; "" for none."""


@dataclass(frozen=True, slots=True)
class CommandParser:
    """A program that reads one sentence a line from standard input and answers each with one line of acts."""

    command: tuple[str, ...]

    def __call__(self, text: str) -> str:
        """The acts of one sentence; many at a time are far quicker through `parse_all`."""
        return self.parse_all([text])[0]

    def parse_all(self, texts: Sequence[str]) -> list[str]:
        """The acts of each sentence, from one run of the program."""
        if not texts:
            return []
        where = f"parser {shlex.join(self.command)}"
        lines = "".join(f"{' '.join(text.split())}\n" for text in texts)
        try:
            done = subprocess.run(self.command, input=lines, capture_output=True, text=True, encoding="utf-8")
        except (FileNotFoundError, PermissionError):
            raise UsageError(f'the parser "{self.command[0]}" cannot be run: is it there, and a program?') from None
        except UnicodeDecodeError:
            raise DataError("must answer in UTF-8", where=where) from None
        if done.returncode:
            errors = done.stderr.strip().splitlines() or ["it said nothing on standard error"]
            raise DataError(f"failed with exit code {done.returncode}: {errors[-1]}", where=where)
        answers = done.stdout.splitlines()
        if len(answers) != len(texts):
            got = f"{len(answers):,} lines for {len(texts):,} sentences"
            fix = "an empty line for none"
            raise DataError("must answer each sentence with one line", where=where, got=got, fix=fix)
        return [answer.strip() for answer in answers]


def command_parser(command: str) -> CommandParser:
    """The parser that a command line names, split as a shell would but run without one.

    >>> command_parser("my-parser --lang en").command
    ('my-parser', '--lang', 'en')
    """
    try:
        words = command_words(command)
    except ValueError as error:
        raise UsageError(f"the parser's command cannot be split into words: {error}; got: {command}") from None
    if not words:
        raise UsageError("the parser's command is empty")
    return CommandParser(tuple(words))


def parse_each(parse: Parse, texts: Iterable[str]) -> dict[str, str]:
    """The acts of each distinct sentence, each parsed once; all in one go where the parser can.

    >>> parse_each(str.upper, ["a", "b", "a"])
    {'a': 'A', 'b': 'B'}
    """
    distinct = list(dict.fromkeys(texts))
    if isinstance(parse, CommandParser):
        return dict(zip(distinct, parse.parse_all(distinct), strict=True))
    answers: dict[str, Any] = {text: parse(text) for text in distinct}
    for text, answer in answers.items():
        if not isinstance(answer, str):
            fix = 'a parser answers with acts as text, "" for none'
            raise DataError("must be text", where=f'the parser\'s answer to "{text}"', got=repr(answer), fix=fix)
    return answers


Weights: TypeAlias = NDArray[np.float64]
ScoredActs: TypeAlias = list[tuple[str, float]]
"""Acts as text with their confidences, best first."""

TOP_ONE = "-tp1"
"""Behind the name of a scorer: its best act gets confidence 1, the others 0, so the oracle still has them."""

_KEPT_ACTS = 1 << 16


def _const(sentences: Sequence[Sentence], _where: str, _scale: float) -> Weights:
    return np.ones(len(sentences))


def _avgword(sentences: Sequence[Sentence], where: str, scale: float) -> Weights:
    means = []
    for sentence in sentences:
        if sentence.words and sentence.confidences is None:
            fix = "give `words` with confidences, or a cnet, or score by const or infev"
            raise DataError("avgword needs the confidence of every word", where=_place_of(sentence, where), fix=fix)
        words = sentence.confidences or ()
        mean = math.fsum(words) / max(len(sentence.words), 1)
        if not 0 <= mean <= 1:
            rule = "must have words with confidences between 0 and 1"
            raise DataError(rule, where=_place_of(sentence, where), got=mean)
        means.append(mean if scale == 1 else math.fsum(one**scale for one in words) / max(len(sentence.words), 1))
    return np.array(means)


def _infev(sentences: Sequence[Sentence], where: str, scale: float) -> Weights:
    logprobs = np.array([sentence.logprob for sentence in sentences])
    unknown = np.flatnonzero(~(logprobs < np.inf))
    if unknown.size:
        sentence = sentences[int(unknown[0])]
        got = None if math.isnan(sentence.logprob) else f"{sentence.logprob:g}"
        fix = "give a natural-log `logprob` for every sentence, or a cnet, or score by const"
        raise DataError("infev needs a logprob", where=_place_of(sentence, where), got=got, fix=fix)
    best = logprobs.max(initial=-np.inf)
    if best == -np.inf:
        fix = "the recogniser must give one of them a logprob above -inf"
        raise DataError("must have a sentence that is possible", where=where or "the list", got="-inf for all", fix=fix)
    return np.asarray(np.exp(scale * (logprobs - best)))


def _place_of(sentence: Sentence, where: str) -> str:
    return f'{where}{": " if where else ""}sentence "{sentence.text}":'


SCORERS: Mapping[str, Callable[[Sequence[Sentence], str, float], Weights]] = {
    "const": _const,
    "avgword": _avgword,
    "infev": _infev,
}
"""const: all sentences alike. avgword: by the mean confidence of their words, 0 for a sentence without words.
infev: by inference evidence, the exponentiated sum of log posteriors along the path, renormalised over the list.
The log posteriors of words (avgword) and of sentences (infev) are multiplied by a scale first."""

NAMES = (*SCORERS, *(f"{name}{TOP_ONE}" for name in SCORERS))
"""Every scorer that can be asked for."""


def weights(name: str, sentences: Sequence[Sentence], *, where: str = "", scale: float = 1.0) -> Weights:
    """How much each sentence of a list counts; they sum to 1.

    Where all score 0 (no words anywhere under avgword) all count alike. An empty list has no weights. Log posteriors
    are multiplied by `scale`: below 1 sentences count more alike, above 1 less.

    >>> heard = [Sentence(("thai",), math.log(0.6)), Sentence(("tie",), math.log(0.2))]
    >>> weights("infev", heard).round(3).tolist(), weights("const", heard).tolist()
    ([0.75, 0.25], [0.5, 0.5])
    >>> weights("infev", heard, scale=2.0).round(3).tolist()
    [0.9, 0.1]
    """
    base, _ = check_name(name)
    if not sentences:
        return np.zeros(0)
    scores = SCORERS[base](sentences, where, scale)
    total = scores.sum()
    return scores / total if total > 0 else np.full(len(sentences), 1 / len(sentences))


def score_sentences(
    sentences: Sequence[Sentence],
    *,
    scorer: str,
    parse: Parse,
    n: int | None = None,
    where: str = "",
    scale: float = 1.0,
) -> ScoredActs:
    """The acts of one utterance with their confidences, best first.

    Of the list the first `n` sentences are taken, all where it is None. Sentences that parse to the same acts, however
    these are ordered, are one hypothesis, written as the first of them; acts of equal confidence keep the order of
    the list. A list without sentences gives no acts.

    >>> heard = [Sentence(("thai",), -0.7), Sentence(("thai", "food"), -1.2), Sentence(("tie",), -1.6)]
    >>> acts = score_sentences(heard, scorer="const", parse=lambda text: "inform(food=thai)" if "thai" in text else "")
    >>> [(act, round(confidence, 3)) for act, confidence in acts]
    [('inform(food=thai)', 0.667), ('', 0.333)]
    """
    return scored_all([sentences], scorer=scorer, parse=parse, n=n, where=[where], scale=scale)[0]


def scored_all(
    lists: Iterable[Sequence[Sentence]],
    *,
    scorer: str,
    parse: Parse,
    n: int | None = None,
    where: Sequence[str] | None = None,
    scale: float = 1.0,
) -> list[ScoredActs]:
    """What `score_sentences` gives for each of many utterances; a sentence that occurs in several is parsed once.

    `where` names the utterances in faults.
    """
    _, top_one = check_name(scorer)
    if n is not None and n < 1:
        raise UsageError(f"a list has at least one sentence; asked for {n}")
    kept = [sentences[:n] for sentences in lists]
    names = where if where is not None else [""] * len(kept)
    acts = parse_each(parse, (sentence.text for sentences in kept for sentence in sentences))
    summed = [
        _summed(
            [acts[sentence.text] for sentence in sentences], weights(scorer, sentences, where=name, scale=scale), name
        )
        for sentences, name in zip(kept, names, strict=True)
    ]
    return [[(act, float(place == 0)) for place, (act, _) in enumerate(one)] for one in summed] if top_one else summed


def check_name(scorer: str) -> tuple[str, bool]:
    """The scorer of sentences that a name stands for, and whether only the best act is kept; refuse unknown names."""
    if scorer not in NAMES:
        near = get_close_matches(scorer.lower(), NAMES, n=1)
        hint = f'; did you mean "{near[0]}"?' if near else ""
        raise UsageError(f'there is no scorer "{scorer}"; there are {", ".join(NAMES)}{hint}')
    return scorer.removesuffix(TOP_ONE), scorer.endswith(TOP_ONE)


def _summed(acts: Sequence[str], confidences: Weights, where: str) -> ScoredActs:
    """Confidences of equal acts added up, best first."""
    total: dict[frozenset[tuple[str, Slot | None]], list[float]] = {}
    text: dict[frozenset[tuple[str, Slot | None]], str] = {}
    for act, confidence in zip(acts, confidences.tolist(), strict=True):
        try:
            meaning = _unordered(act)
        except DataError as fault:
            place = f"{where}{': ' if where else ''}the parser's answer"
            raise DataError(f"must be acts: {fault}", where=place, fix="correct the parser") from None
        total.setdefault(meaning, []).append(confidence)
        text.setdefault(meaning, act)
    ordered = [(text[meaning], float(round_sums(math.fsum(parts)))) for meaning, parts in total.items()]
    return sorted(ordered, key=lambda one: -one[1])


@lru_cache(_KEPT_ACTS)
def _unordered(text: str) -> frozenset[tuple[str, Slot | None]]:
    """What acts mean, whatever the order in which they are written."""
    return frozenset((act.name, slot) for act in parse_acts(text) for slot in act.slots or (None,))


Heard = tuple[str, Any, Any]
"""Where an utterance stands, its list of sentences, its confusion network."""
Ear = Literal["auto", "asr", "cnet", "network"]

SENTENCES = 100
"""Sentences taken from a confusion network where nobody says how many."""


@dataclass(frozen=True, slots=True)
class Hypothesiser:
    """Makes acts with confidences of what was heard, many utterances at a time.

    `ear` says where sentences come from: the recogniser's list (`asr`), the confusion network (`cnet`), or whichever
    there is (`auto`: the list first, unless its words lack the confidences that avgword needs; `network`: the network
    first, so that all scorers hear the same).
    """

    scorer: str
    parse: Parse
    sentences: int | None = None
    ear: Ear = "auto"
    acts: int | None = None
    scale: float = 1.0
    memory: dict[bytes, list[Sentence]] | None = None
    """Remembers the sentences of what was heard, where the same is to be scored again."""

    def __call__(self, heard: Sequence[Heard]) -> list[ScoredActs]:
        """The acts of each utterance with their confidences, best first.

        >>> grammar = lambda text: "inform(food=thai)" if "thai" in text else "bye"
        >>> heard = [("u1", [{"text": "thai", "logprob": -0.1}, {"text": "bye", "logprob": -2.0}], None)]
        >>> Hypothesiser("const", grammar)(heard)
        [[('inform(food=thai)', 0.5), ('bye', 0.5)]]
        """
        find = self.sentences_of if self.memory is None else self._remembered
        found = scored_all(
            [find(*one) for one in heard],
            scorer=self.scorer,
            parse=self.parse,
            n=self.sentences,
            where=[where for where, _, _ in heard],
            scale=self.scale,
        )
        return [one[: self.acts] for one in found]

    def _remembered(self, where: str, asr: Any, cnet: Any) -> list[Sentence]:
        assert self.memory is not None
        heard = repr((self.scorer.startswith("avgword"), asr, cnet)).encode()
        key = blake2b(heard, digest_size=16).digest()
        if key not in self.memory:
            self.memory[key] = self.sentences_of(where, asr, cnet)
        return self.memory[key]

    def sentences_of(self, where: str, asr: Any, cnet: Any) -> list[Sentence]:
        """The sentences of one utterance, from its list or its network."""
        if self.ear == "asr" and asr is None:
            raise DataError("has no asr list", where=f"{where}:", fix="`heard` cnet takes the confusion network")
        if self.ear == "cnet" and cnet is None:
            raise DataError("has no cnet", where=f"{where}:", fix="`heard` asr takes the list of sentences")
        if asr is None and cnet is None:
            raise DataError("has neither asr nor cnet", where=f"{where}:", fix='"asr": [] says that nothing was heard')
        if cnet is None or self.ear == "asr":
            return listed_sentences(asr, where)
        if asr is None or self.ear in ("cnet", "network"):
            return self._from_network(cnet, where)
        sentences = listed_sentences(asr, where)
        unsure = any(one.confidences is None and one.words for one in sentences)
        return self._from_network(cnet, where) if unsure and self.scorer.startswith("avgword") else sentences

    def _from_network(self, cnet: Any, where: str) -> list[Sentence]:
        return nbest(network_of(cnet, where), self.sentences or SENTENCES)


BUNDLED_GRAMMAR = (
    "sentences were parsed by the bundled grammar of a restaurant guide; the options grammar and parser name another"
)


@dataclass(frozen=True, slots=True)
class Scoring:
    """Which scorers make lists of what a recogniser heard, and what parses sentences; no lists are made without names.

    Several scorers in one text are separated by commas.

    >>> [name for name, _ in Scoring("const,infev").hypothesisers()]
    ['const', 'infev']
    """

    scorer: str | Sequence[str] | None = None
    grammar: str | Path | None = None
    parser: Parse | str | None = None
    heard: Ear = "auto"
    sentences: int | None = None
    scale: float | Literal["tuned"] = 1.0
    """What log posteriors are multiplied by; tuned: chosen by the ICE (see `demur.nbest_lists.scales`)."""
    memory: dict[bytes, list[Sentence]] | None = None

    def __post_init__(self) -> None:
        """Refuse unknown scorers, and options that go with none."""
        for name in self.names:
            check_name(name)
        given = (self.grammar, self.parser, self.sentences, self.heard != "auto", self.scale != 1)
        if not self.names and any(given):
            raise UsageError("`grammar`, `parser`, `heard`, `sentences` and `acoustic_scale` go with `scorer`")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the scorers, each once."""
        given = self.scorer.split(",") if isinstance(self.scorer, str) else self.scorer or ()
        return tuple(dict.fromkeys(name.strip() for name in given))

    def hypothesisers(self) -> Iterator[tuple[str, Hypothesiser]]:
        """What makes the lists, by the name of the scorer; all share what was parsed."""
        parse = remembering(parser_of(self.grammar, self.parser))
        scale = 1.0 if self.scale == "tuned" else self.scale
        how = {"sentences": self.sentences, "ear": self.heard, "scale": scale, "memory": self.memory}
        return ((name, Hypothesiser(name, parse, **how)) for name in self.names)  # type: ignore[arg-type]

    @property
    def notes(self) -> tuple[str, ...]:
        """That nobody said how sentences are to be parsed, and by what log posteriors are multiplied."""
        scaled = () if self.scale in (1, "tuned") or self.memory is not None else (f"acoustic scale {self.scale:g}",)
        return scaled if self.grammar or self.parser else (*scaled, BUNDLED_GRAMMAR)


def parser_of(grammar: str | Path | None, parser: Parse | str | None) -> Parse:
    """The parser that is asked for: a grammar file, a callable, a command, or by default a restaurant guide's."""
    if grammar is not None and parser is not None:
        raise UsageError("sentences are parsed by a grammar or by a parser, not by both")
    if parser is not None:
        return command_parser(parser) if isinstance(parser, str) else parser
    return (bundled() if grammar is None else Grammar.read(Path(grammar))).parse


def remembering(parse: Parse) -> Parse:
    """The parser, asked only once for each sentence it is ever given; a program is asked in batches as it is."""
    return parse if isinstance(parse, CommandParser) else cache(lambda text: parse_each(parse, [text])[text])
