"""Draws in a process of its own, which the drawing library may end without harm; run as a script, loads nothing else.

Both ways a message is its length in eight bytes and then JSON or bytes; an answer begins with a byte that says whether
it is a picture or a reason.
"""

import json
import sys
from typing import IO, Any

LENGTH = 8
DRAWN, REFUSED = b"\x01", b"\x00"


def read_message(stream: IO[bytes]) -> bytes | None:
    """The next message; None at the end of the stream, and where it breaks off."""
    head = stream.read(LENGTH)
    size = int.from_bytes(head, "big")
    body = stream.read(size) if len(head) == LENGTH else b""
    return body if len(head) == LENGTH and len(body) == size else None


def write_message(stream: IO[bytes], message: bytes) -> None:
    """Writes a message at once."""
    stream.write(len(message).to_bytes(LENGTH, "big") + message)
    stream.flush()


def answer_to(request: dict[str, Any]) -> bytes:
    """What vl-convert's function of this name gives for these arguments."""
    import vl_convert

    try:
        result = getattr(vl_convert, request["function"])(*request["arguments"], **request["options"])
    except Exception as fault:
        return REFUSED + str(fault).encode("utf-8", "replace")
    return DRAWN + (result.encode("utf-8", "replace") if isinstance(result, str) else bytes(result))


if __name__ == "__main__":
    while (message := read_message(sys.stdin.buffer)) is not None:
        write_message(sys.stdout.buffer, answer_to(json.loads(message)))
