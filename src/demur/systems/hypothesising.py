"""From what a recogniser heard to N-best lists of acts: sentences, their weights, and a parser put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from demur.data.recognition import Sentence, network_of
from demur.data.recognition import sentences_of as listed_sentences
from demur.errors import DataError
from demur.systems.confusion import nbest
from demur.systems.parsers import Parse, parse_each
from demur.systems.scorers import ScoredActs, scored_all

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

    def __call__(self, heard: Sequence[Heard]) -> list[ScoredActs]:
        """The acts of each utterance with their confidences, best first.

        >>> grammar = lambda text: "inform(food=thai)" if "thai" in text else "bye"
        >>> heard = [("u1", [{"text": "thai", "logprob": -0.1}, {"text": "bye", "logprob": -2.0}], None)]
        >>> Hypothesiser("const", grammar)(heard)
        [[('inform(food=thai)', 0.5), ('bye', 0.5)]]
        """
        lists = [self.sentences_of(*one) for one in heard]
        found = scored_all(
            lists, scorer=self.scorer, parse=self.parse, n=self.sentences, where=[where for where, _, _ in heard]
        )
        return [one[: self.acts] for one in found]

    def sentences_of(self, where: str, asr: Any, cnet: Any) -> list[Sentence]:
        """The sentences of one utterance, from its list or its network."""
        if self.ear == "asr" and asr is None:
            raise DataError("has no asr list", where=f"{where}:", fix="--heard cnet takes the confusion network")
        if self.ear == "cnet" and cnet is None:
            raise DataError("has no cnet", where=f"{where}:", fix="--heard asr takes the list of sentences")
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


def remembering(parse: Parse) -> Parse:
    """The parser, asked only once for each sentence it is ever given; a program is asked in batches as it is."""
    if not _is_plain(parse):
        return parse
    known: dict[str, str] = {}

    def asked(text: str) -> str:
        if text not in known:
            known.update(parse_each(parse, [text]))
        return known[text]

    return asked


def _is_plain(parse: Callable[[str], str]) -> bool:
    return not hasattr(parse, "parse_all")
