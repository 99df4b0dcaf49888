"""`make golden`: records what every case gives now, and says what differs from what was recorded."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is loaded; as in the tests

from golden.record import HOME, Case, Workshop, cases, compared, write
from golden.shapes import add_promises


def main() -> None:
    """Rewrite the golden files that differ; those of cases that are gone are removed."""
    with TemporaryDirectory() as folder:
        workshop = Workshop(Path(folder).resolve())
        for case in cases().values():
            for kind, output in workshop.outputs(case).items():
                if differs(case, kind, output):
                    write(case, kind, output)
    kept = {file for case in cases().values() for file in case.files.values()}
    for kind in ("json", "text", "markdown"):
        for file in set((HOME / kind).iterdir()) - kept:
            print(f"{kind}/{file.name}: removed, no case has it")
            file.unlink()
    add_promises()


def differs(case: Case, kind: str, output: Any) -> bool:
    """Whether an output is not what was recorded; prints every number and key that differs, and how many texts do."""
    file = case.files[kind]
    if not file.exists():
        print(f"{kind}/{file.name}: new")
        return True
    found = compared(case, kind, output)
    words = [one for one in found if one.only_words]
    for one in found:
        if not one.only_words:
            print(f"{kind}/{file.name}: {one}")
    if words:
        print(f"{kind}/{file.name}: {'texts' if kind == 'json' else 'lines'} that differ in wording: {len(words)}")
    return bool(found)


if __name__ == "__main__":
    main()
