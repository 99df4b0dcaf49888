"""Commands as users type them: split into words and quoted by the rules of this system."""

import shlex
import subprocess
import sys


def command_words(command: str) -> list[str]:
    r"""The words of a command; on Windows a backslash is part of a path. Raises ValueError where a quote is open.

    >>> command_words("my-parser --name 'two words'")
    ['my-parser', '--name', 'two words']
    """
    if sys.platform == "win32":
        return [_unquoted(word) for word in shlex.split(command, posix=False)]
    return shlex.split(command)


def _unquoted(word: str) -> str:
    return word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "\"'" else word


def quoted_word(word: str) -> str:
    """A word as it is typed at a command line, in quotes where it needs them.

    >>> quoted_word("result.intent"), quoted_word("Top intent")
    ('result.intent', "'Top intent'")
    """
    return subprocess.list2cmdline([word]) if sys.platform == "win32" else shlex.quote(word)
