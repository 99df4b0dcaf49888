"""Small N-best lists for the tests of what is read."""

import json

from demur.nbest_lists.table import NBestReading, read_nbest

THAI = "inform(food=thai)"


def row(*hypotheses, **cells):
    """An utterance that meant thai food; hypotheses are pairs of what is written and a confidence."""
    listed = hypotheses or ((THAI, 0.7), (["bye"], 0.2))
    return {
        "id": "u1",
        "reference": THAI,
        "hypotheses": [{"act" if isinstance(w, str) else "items": w, "confidence": c} for w, c in listed],
    } | cells


def jsonl(rows):
    return "".join(json.dumps(cells) + "\n" for cells in rows).encode()


def written(folder, name, content):
    path = folder / name
    path.write_bytes(content)
    return path


def read(folder, rows, **options):
    content = rows if isinstance(rows, bytes) else jsonl(rows)
    return read_nbest(written(folder, "run.jsonl", content), reading=NBestReading(**options))
