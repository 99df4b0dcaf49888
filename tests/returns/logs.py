"""Small logs for the tests of what is read and judged."""

import json

import polars as pl

from demur.returns.table import Reading, responses

JUDGED = {
    "id": pl.String,
    "system": pl.String,
    "dialogue": pl.String,
    "target": pl.List(pl.String),
    "prediction": pl.String,
    "answered": pl.Boolean,
    "right": pl.Boolean,
    "failed": pl.Boolean,
    "out_of_scope": pl.Boolean,
    "confidence": pl.Float64,
    "weight": pl.Float64,
}


def row(**cells):
    return {"target": "a", "prediction": "a", "confidence": 0.5} | cells


def judged(*rows, **options):
    return responses(list(rows), reading=Reading(**options)).frame


def jsonl(path, rows):
    path.write_text("".join(json.dumps(cells) + "\n" for cells in rows))
    return path
