"""What must hold between the rows of judged responses."""

from collections.abc import Sequence

import polars as pl

from demur.data.judging import LOWEST, RANK_LOWEST
from demur.data.tables import ROW, Table
from demur.data.wording import Wording
from demur.errors import DataError

SOURCE = "demur:source"
"""The column that numbers the table a row came from."""

CORRECT = "demur:correct"
"""The column that holds `correct` as it was given, null where the target alone was compared."""

_REPEATED = Wording("id is repeated", "ids are repeated")
_WAYS_OUT = (
    "several systems in one file need a column system; "
    "if an input was tried several times, make the id unique, e.g. from task and trial"
)
_NEAR = Wording(
    "prediction equals a target but for case or spaces, e.g. {}; it counts as wrong",
    "predictions equal a target but for case or spaces, e.g. {}; they count as wrong",
)


def refuse_duplicates(frame: pl.DataFrame, tables: Sequence[Table]) -> None:
    """Refuses an id that occurs twice within a system."""
    systems = frame["system"].unique(maintain_order=True)
    for system in systems:
        rows = frame.filter(pl.col("system") == system) if len(systems) > 1 else frame
        if rows["id"].null_count() == 0 and _has_repeats(rows["id"]):
            raise _duplicate(system, rows, tables)


def _has_repeats(ids: pl.Series) -> bool:
    """Looks at hashes first: when these are distinct, so are the ids, and numbers compare far faster."""
    return ids.hash().n_unique() < len(ids) and ids.n_unique() < len(ids)


def _duplicate(system: str, rows: pl.DataFrame, tables: Sequence[Table]) -> DataError:
    repeated = rows.filter(pl.col("id").is_duplicated())
    name = repeated["id"][0]
    pair = repeated.filter(pl.col("id") == name).head(2)
    places = [tables[source].place(row) for source, row in pair.select(SOURCE, ROW).iter_rows()]
    count = _REPEATED.told(repeated["id"].n_unique())
    rule = f'the id "{name}" occurs twice in system "{system}", first at {places[0]} ({count} in all)'
    return DataError(rule, where=f"{places[1]}:", fix=_WAYS_OUT)


def refuse_foreign_labels(frame: pl.DataFrame) -> list[str]:
    """Refuses a system none of whose predictions is a target anywhere; warns where labels are few.

    Too few is a single label among the targets or among the predictions: such a system may simply be wrong.
    """
    compared = _compared(frame)
    systems = compared.group_by("system", maintain_order=True).agg(pl.col("right").any()).filter(~pl.col("right"))
    warnings = []
    for system in systems.collect()["system"]:
        targets = frame["target"].explode().drop_nulls().unique(maintain_order=True)
        predictions = compared.filter(pl.col("system") == system).collect()["prediction"].unique(maintain_order=True)
        if not set(predictions) & set(targets):
            warnings += foreign_labels(system, targets, predictions)
    return warnings


def foreign_labels(system: str, targets: pl.Series, predictions: pl.Series) -> list[str]:
    """Refuses labels that have nothing in common; warns where there is a single one on either side."""
    fault = _foreign(system, targets, predictions)
    if len(targets) > 1 and len(predictions) > 1:
        raise fault
    return [str(fault)]


def _foreign(system: str, targets: pl.Series, predictions: pl.Series) -> DataError:
    shown = [", ".join(f'"{label}"' for label in labels.head(3)) for labels in (targets, predictions)]
    rule = f"no prediction occurs among the targets: targets are {shown[0]}, predictions {shown[1]}"
    fix = "are they coded differently? judged answers need a column correct"
    return DataError(rule, where=f'system "{system}":', fix=fix)


def near_matches(frame: pl.DataFrame) -> list[str]:
    """Warns of predictions that would be right if letter case and the spaces around labels did not matter.

    Where labels are many times fewer than rows, rows are looked at only if two labels differ in nothing else.
    """
    wrong = _compared(frame).filter(~pl.col("right")).select("prediction", "target").collect()
    labels = wrong.select(pl.col("prediction").approx_n_unique()).item()
    if labels < wrong.height / 10:
        wrong = wrong.filter(pl.col("prediction").is_in(_twins(wrong).implode()))
    pairs = wrong.with_row_index().explode("target")
    near = pairs.filter(_folded(pairs["prediction"]) == _folded(pairs["target"])).unique("index", maintain_order=True)
    if near.is_empty():
        return []
    example = f'"{near["prediction"][0]}" and "{near["target"][0]}"'
    return [_NEAR.about(example).told(near.height)]


def _twins(wrong: pl.DataFrame) -> pl.Series:
    targets = wrong["target"].explode().drop_nulls().unique().alias("prediction")
    labels = pl.concat([wrong["prediction"].unique(), targets]).unique()
    return labels.filter(_folded(labels).is_duplicated())


def unranked_notes(frame: pl.DataFrame, unranked: Sequence[str], tables: Sequence[Table]) -> list[str]:
    """Says which systems have no confidences; refuses one that has some in one table and none in another."""
    if not unranked:
        return []
    answers = frame.filter("answered", pl.col("system").is_in(list(unranked)))
    ranked = answers.filter(pl.col("confidence") != LOWEST)
    if not ranked.is_empty():
        raise _ranked_in_part(answers, ranked["system"][0], tables)
    every = frame["system"].n_unique() == len(unranked)
    of_which = "" if every else f" of {', '.join(unranked)}"
    return [f"no confidences{of_which}: only what a system withholds by itself counts"]


def _ranked_in_part(answers: pl.DataFrame, system: str, tables: Sequence[Table]) -> DataError:
    lacking = answers.filter(pl.col("system") == system, pl.col("confidence") == LOWEST)
    place = tables[lacking[SOURCE][0]].place(lacking[ROW][0])
    rule = f'is missing for an answer, though other answers of system "{system}" have one'
    return DataError(rule, where=f"{place}: confidence", fix=RANK_LOWEST)


def _compared(frame: pl.DataFrame) -> pl.LazyFrame:
    return frame.lazy().filter("answered", ~pl.col("out_of_scope"), pl.col(CORRECT).is_null())


def _folded(labels: pl.Series) -> pl.Series:
    return labels.str.strip_chars().str.to_lowercase()
