"""Reads scores of classifiers: arrays of NumPy, and tables with a column for each label."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.errors import DataError
from demur.importers.archives import LARGEST
from demur.importers.choices import ImportChoices
from demur.importers.protocol import ForeignFile, ImportedLog, Importer, chosen, delimited_rows
from demur.importers.values import TRUTHS

GUESSES = ("y_pred", "prediction", "pred", "predicted")
PROBABILITIES = ("y_proba", "proba", "y_prob", "probabilities", "predict_proba", "probs", "y_score")
MARGINS = ("decision", "decision_function", "logits", "scores")
UNNAMED = ("", "Unnamed: 0", "index")


class ClassifierArrays(Importer):
    """Arrays that NumPy wrote, and tables with a column for each label."""

    name = "arrays"
    title = "arrays or wide table of a classifier"

    def recognises(self, file: ForeignFile) -> str:
        """An array, several, a wide table, a table with a list of probabilities, or one with the largest."""
        if file.start.startswith(b"\x93NUMPY"):
            return "array"
        if file.start.startswith(b"PK\x03\x04"):
            return "arrays" if b".npy" in file.start[:100] else ""
        if file.is_json or file.source.format == "other":
            return ""
        truth = _named(file.columns, TRUTHS)
        if truth is None:
            return ""
        if file.source.format in ("parquet", "arrow"):
            return "lists" if _named(file.columns, PROBABILITIES) and _list_column(file) else ""
        if {"y_true", "y_pred"} <= set(file.columns) and _named(file.columns, PROBABILITIES):
            return "top"
        header, *rows = delimited_rows(file.start, limit=200)
        values = {row[header.index(truth)] for row in rows[:-1] if len(row) == len(header)}
        return "wide" if len(values & set(header)) > 1 else ""

    def read(self, files: Sequence[tuple[str, ForeignFile]], choices: ImportChoices) -> list[ImportedLog]:
        """A log for each table and archive; arrays of their own make one together."""
        logs = []
        apart: dict[str, Any] = {}
        arrays = [file for role, file in files if role == "array"]
        for file in arrays:
            array = _load(file)
            apart["y_proba" if array.ndim == 2 else "y_true"] = array
        if arrays:
            logs.append(self._of_arrays(arrays[0], apart, choices))
        for role, file in files:
            if role == "arrays":
                logs.append(self._of_arrays(file, _load_several(file), choices))
            elif role != "array":
                logs.append(self._of_table(role, file, choices))
        return logs

    def _of_arrays(self, file: ForeignFile, arrays: dict[str, Any], choices: ImportChoices) -> ImportedLog:
        truth = _named(arrays, TRUTHS)
        named = [name for name in (*PROBABILITIES, *MARGINS, "predictions") if name in arrays]
        wide = [name for name in named if np.ndim(arrays[name]) == 2]
        if truth is None or not wide:
            held = ", ".join(f"{name} {np.shape(one)}" for name, one in arrays.items())
            fix = "give y_true and predict_proba: demur score proba.npy y_true.npy, or both in one .npz"
            raise DataError(
                f"needs both targets and scores of every class, and holds {held}", where=f"{file.name}:", fix=fix
            )
        confidence = chosen("confidence", "confidence", wide, choices.confidence, file.name, wide[0])
        scores = np.asarray(arrays[confidence or wide[0]], dtype=float)
        targets = np.asarray(arrays[truth])
        if len(targets) != len(scores):
            rule = f"has {len(scores):,} rows of scores and {len(targets):,} targets"
            raise DataError(rule, where=f"{file.name}:", fix="both must be of the same inputs")
        classes = _classes(arrays.get("classes", arrays.get("classes_")), targets, scores.shape[1], file.name)
        texts = [_class_text(one) for one in targets.tolist()]
        taken = {"id": "the place of a row", "target": truth}
        others = [f"--confidence {name} takes another" for name in wide if name != confidence]
        return self._log(file, texts, scores, classes, taken, confidence or "", others)

    def _of_table(self, role: str, file: ForeignFile, choices: ImportChoices) -> ImportedLog:
        cells = file.cells()
        truth = _named(cells.columns, TRUTHS) or ""
        targets = [_class_text(one) for one in cells[truth].to_list()]
        if role == "top":
            column = _named(cells.columns, PROBABILITIES) or ""
            frame = cells.rename({truth: "target", "y_pred": "prediction", column: "confidence"})
            frame = frame.with_columns(pl.col("confidence").cast(pl.Float64, strict=False))
            unnamed = _named(cells.columns, UNNAMED)
            frame = frame.rename({unnamed: "id"}) if unnamed is not None else frame.with_row_index("id")
            taken = {"id": "the first column", "target": truth, "prediction": "y_pred", "confidence": column}
            return self.log(file, frame, taken)
        if role == "lists":
            column = _list_column(file) or ""
            lengths = set(cells[column].list.len().to_list())
            if len(lengths) != 1:
                raise DataError(f'the lists in "{column}" must be of one length', where=f"{file.name}:")
            scores = np.array(cells[column].to_list(), dtype=float)
            classes = _classes(None, np.asarray(targets), scores.shape[1], file.name)
            return self._log(file, targets, scores, classes, {"id": "the place of a row", "target": truth}, column)
        guess = _named(cells.columns, GUESSES)
        labels = [name for name in cells.columns if name not in (truth, guess, *UNNAMED, "id", "text", "input")]
        numbers = cells.select(pl.col(labels).cast(pl.Float64, strict=False))
        labels = [name for name in labels if numbers[name].null_count() == 0]
        lacking = sorted(set(targets) - set(labels))
        if lacking:
            rule = f'no column of numbers is called "{lacking[0]}", as a target is'
            raise DataError(rule, where=f"{file.name}:", fix="a wide table has a column for each label")
        predicted = cells[guess].to_list() if guess else None
        taken = {"id": "the place of a row", "target": truth, "prediction": guess or "the largest column"}
        del choices
        return self._log(
            file, targets, numbers.select(labels).to_numpy(), labels, taken, "columns of labels", (), predicted
        )

    def _log(
        self,
        file: ForeignFile,
        targets: Sequence[str],
        scores: NDArray[np.float64],
        classes: Sequence[str],
        taken: dict[str, str],
        origin: str,
        others: Sequence[str] = (),
        predicted: Sequence[str] | None = None,
    ) -> ImportedLog:
        """The log of scores of every class: probabilities as they are, logits as softmax, margins as differences."""
        if not np.isfinite(scores).all():
            raise DataError(
                "has scores that are NaN or infinite", where=f"{file.name}:", fix="every class needs a number"
            )
        shares, words = as_shares(scores, logits=origin in ("predictions", "logits"))
        order = np.argsort(-scores, axis=1, kind="stable")
        largest = np.take_along_axis(scores, order[:, :2], axis=1)
        margin = largest[:, 0] - largest[:, 1] if scores.shape[1] > 1 else largest[:, 0]
        sure = margin if shares is None else np.take_along_axis(shares, order[:, :1], axis=1)[:, 0]
        frame = pl.DataFrame({"id": [str(place) for place in range(len(scores))], "target": list(targets)})
        best = [classes[place] for place in order[:, 0]] if predicted is None else list(predicted)
        frame = frame.with_columns(pl.Series("prediction", best), pl.Series("confidence", sure))
        if shares is not None and scores.shape[1] <= 50:
            ranked = [
                [{"label": classes[k], "confidence": float(row[k])} for k in places]
                for row, places in zip(shares, order.tolist(), strict=True)
            ]
            frame = frame.with_columns(pl.Series("nbest", ranked))
        taken = {**taken, "confidence": f"{words} of {origin}"}
        taken.setdefault("prediction", "the class of the largest")
        return self.log(file, frame, taken, others, [] if shares is not None else [_NO_SHARES.format(file.name)])


_NO_SHARES = "{}: these scores are no probabilities, so Brier score, ECE and NCE say nothing of them"


def as_shares(scores: NDArray[np.float64], *, logits: bool) -> tuple[NDArray[np.float64] | None, str]:
    """Scores as probabilities, and how confidence comes from them; None where they are neither shares nor logits."""
    if (scores >= 0).all() and np.allclose(scores.sum(axis=1), 1, atol=1e-3):
        return scores, "the largest"
    if logits:
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True), "the largest of the softmax"
    return None, "the distance of the two largest"


def _named(names: Any, wanted: Sequence[str]) -> str | None:
    return next((name for name in wanted if name in names), None)


def _list_column(file: ForeignFile) -> str | None:
    from demur.core.io.files import scan_columnar

    schema = scan_columnar(file.source).collect_schema()
    lists = [name for name in PROBABILITIES if isinstance(schema.get(name), pl.List | pl.Array)]
    return lists[0] if lists else None


def _classes(given: Any, targets: NDArray[Any], count: int, where: str) -> list[str]:
    """The labels of the columns of scores: those given, numbers where targets are, or all targets in order."""
    if given is not None:
        classes = [_class_text(one) for one in np.asarray(given).tolist()]
    elif np.issubdtype(targets.dtype, np.integer):
        classes = [str(place) for place in range(count)]
    else:
        classes = sorted({_class_text(one) for one in targets.tolist()})
    if len(classes) != count:
        rule = f"has scores of {count} classes and {len(classes)} labels"
        raise DataError(
            rule, where=f"{where}:", fix="store the labels as classes in a .npz, in the order of the columns"
        )
    return classes


def _class_text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


_REWRITE = "write it again; labels of the type object must be text: y_true.astype(str)"


def _array(content: bytes) -> NDArray[Any]:
    """The array in a .npy file; raises ValueError where its texts hold what is no character."""
    made: NDArray[Any] = np.load(io.BytesIO(content), allow_pickle=False)
    if made.dtype.kind == "U" and made.size:
        codes = np.ascontiguousarray(made).view(f"{made.dtype.byteorder}u4")
        if codes.max() > sys.maxunicode or np.any(codes - 0xD800 < 0x800):
            raise ValueError("its texts hold numbers that are no characters")
    return made


def _load(file: ForeignFile) -> NDArray[Any]:
    try:
        return _array(file.content())
    except (ValueError, EOFError, OSError, SyntaxError) as fault:
        raise DataError(f"cannot be read as a NumPy array: {fault}", where=f"{file.name}:", fix=_REWRITE) from None


def _load_several(file: ForeignFile) -> dict[str, Any]:
    try:
        with ZipFile(io.BytesIO(file.content()) if file.source.compression else file.source.path) as archive:
            if sum(one.file_size for one in archive.infolist()) > LARGEST:
                raise DataError(f"unpacks to more than {LARGEST:,} bytes", where=f"{file.name}:")
            return {one.filename.removesuffix(".npy"): _array(archive.read(one)) for one in archive.infolist()}
    except (ValueError, EOFError, OSError, SyntaxError, BadZipFile, RuntimeError, NotImplementedError) as fault:
        raise DataError(f"cannot be read as NumPy arrays: {fault}", where=f"{file.name}:", fix=_REWRITE) from None
