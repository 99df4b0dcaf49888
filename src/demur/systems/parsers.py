"""Semantic parsers: any callable from a sentence to the text of its acts, or a program that answers line by line."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from demur.errors import DataError, UsageError

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
        lines = [" ".join(text.split()) for text in texts]
        answers = self._run("".join(f"{line}\n" for line in lines)).splitlines()
        if len(answers) != len(texts):
            got = f"{len(answers):,} lines for {len(texts):,} sentences"
            raise DataError(
                "must answer each sentence with one line", where=self._name, got=got, fix="an empty line for none"
            )
        return [answer.strip() for answer in answers]

    def _run(self, sentences: str) -> str:
        try:
            done = subprocess.run(self.command, input=sentences, capture_output=True, text=True, encoding="utf-8")
        except (FileNotFoundError, PermissionError):
            raise UsageError(f'the parser "{self.command[0]}" cannot be run: is it there, and a program?') from None
        except UnicodeDecodeError:
            raise DataError("must answer in UTF-8", where=self._name) from None
        if done.returncode:
            said = done.stderr.strip().splitlines()
            last = said[-1] if said else "it said nothing on standard error"
            raise DataError(f"failed with exit code {done.returncode}: {last}", where=self._name)
        return done.stdout

    @property
    def _name(self) -> str:
        return f"parser {shlex.join(self.command)}"


def command_parser(command: str) -> CommandParser:
    """The parser that a command line names, split as a shell would but run without one.

    >>> command_parser("my-parser --lang en").command
    ('my-parser', '--lang', 'en')
    """
    try:
        words = shlex.split(command)
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
    return {text: _checked(parse(text), text) for text in distinct}


def _checked(answer: object, text: str) -> str:
    if not isinstance(answer, str):
        fix = 'a parser answers with acts as text, "" for none'
        raise DataError("must be text", where=f'the parser\'s answer to "{text}"', got=repr(answer), fix=fix)
    return answer
