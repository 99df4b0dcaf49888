"""The folder of a study: its design, its secret, its links, and a new one made from the example."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
from importlib.resources import files
from pathlib import Path

from demur.errors import UsageError
from demur.study.design import FILE, WozDesign, read_design

KEY = "secret.key"
AUDIO = "audio"
EXAMPLE = ("study.toml", "pairs.jsonl")


def is_study(path: object) -> bool:
    """Whether this is the folder of a study."""
    return isinstance(path, str | Path) and (Path(path) / FILE).is_file()


ALONE = {
    'names = ["anna", "ben"]': 'names = ["you"]',
    "rounds = 2 ": "rounds = 0 ",
    "delay = 8.0": "delay = 5.0",
    "connect = 3.0": "connect = 1.0",
    "dialogues = 4 ": "dialogues = 2 ",
    "wait = 60.0 ": "wait = 20.0 ",
    "seed = 1 ": "seed = 41 ",
}
"""What is different where one person plays both sides."""


def new_folder(folder: Path, name: str | None = None, *, alone: bool = False) -> WozDesign:
    """Write the example study to a new folder, under a name of its own where one is given."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists and is not empty; name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    for one in EXAMPLE:
        text = files("demur.corpora").joinpath("study", one).read_text(encoding="utf-8")
        if one == FILE and name is not None:
            text = text.replace('name = "museum"', f'name = "{name}"', 1)
        for old, new in ALONE.items() if one == FILE and alone else ():
            text = text.replace(old, new, 1)
        (folder / one).write_text(text, encoding="utf-8")
    return read_design(folder)


def study_key(folder: Path) -> bytes:
    """The secret of a study, from which its tokens are made; it is made once, and only its owner can read it."""
    path = folder / KEY
    if not path.exists():
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32) + "\n")
    text = path.read_text(encoding="ascii").strip()
    if len(text) != 64 or any(sign not in "0123456789abcdef" for sign in text):
        raise UsageError(f"{path} is not the secret of a study; remove it to have new links made")
    return bytes.fromhex(text)


def token_digest(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(f"demur study {token}".encode()).hexdigest()


def completion_code(key: bytes, person: str) -> str:
    """The code by which a participant shows that they took part to the end.

    >>> completion_code(b"k", "p0001") == completion_code(b"k", "p0001") != completion_code(b"k", "p0002")
    True
    """
    made = hmac.digest(key, f"done:{person}".encode(), "sha256")
    return base64.b32encode(made)[:8].decode()
