"""From the options of the command line to judged responses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from demur.apps.cli.options import InputOptions
from demur.core.options import rate_or_range as parse_rate
from demur.errors import UsageError
from demur.show import path_text

if TYPE_CHECKING:
    from demur.data.responses import Reading, Responses


def reading_of(options: InputOptions, *, keep: tuple[str, ...] = (), plain_labels: bool = False) -> Reading:
    """The reading that the options ask for; with `plain_labels` no target is taken to mean out of scope."""
    from demur.data.responses import Reading

    default = Reading()
    out_of_scope = () if plain_labels else default.out_of_scope
    return Reading(
        columns=dict(pair_of(text, "--map", "NAME=COLUMN") for text in options.map),
        where=tuple(pair_of(text, "--where", "COLUMN=VALUE") for text in options.where),
        out_of_scope=_labels(options.out_of_scope, out_of_scope),
        withheld=_labels(options.withheld, default.withheld),
        missing_confidence=options.missing_confidence,
        keep=keep,
    )


def read(
    files: list[str], options: InputOptions, *, keep: tuple[str, ...] = (), plain_labels: bool = False
) -> Responses:
    """The judged responses of the files."""
    from demur.data.responses import read_responses

    return read_responses(*files, reading=reading_of(options, keep=keep, plain_labels=plain_labels))


def rate_or_range(text: str) -> float | tuple[float, float]:
    """A rate, as 0.2 or 20%, or a range of rates, as 0.1:0.3."""
    try:
        return parse_rate(text)
    except ValueError:
        raise UsageError(f'a rate is a number such as 0.2, or a range such as 0.1:0.3; got "{text}"') from None


def pair_of(text: str, option: str, form: str) -> tuple[str, str]:
    """The two sides of what an option takes, such as NAME=COLUMN."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UsageError(f'{option} takes {form}; got "{text}"')
    return path_text(name.strip()), path_text(value)


def _labels(given: list[str], default: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(path_text(label) for label in given if label) if given else default
