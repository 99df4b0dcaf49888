"""What must hold between the rows of judged responses."""

from collections.abc import Sequence

import polars as pl

from demur.data.tables import ROW, Table
from demur.errors import DataError

SOURCE = "demur:source"
"""The column that numbers the table a row came from."""

CORRECT = "demur:correct"
"""The column that holds `correct` as it was given, null where the target alone was compared."""


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
    count = repeated["id"].n_unique()
    rule = (
        f'the id "{name}" occurs twice in system "{system}", first at {places[0]} '
        f"({count:,} {'id is' if count == 1 else 'ids are'} repeated in all)"
    )
    return DataError(rule, where=f"{places[1]}:", fix="several systems in one file need a column system")


def refuse_foreign_labels(frame: pl.DataFrame) -> list[str]:
    """Refuses a system none of whose predictions is a target anywhere; warns where labels are few.

    Too few is a single label among the targets or among the predictions: such a system may simply be wrong.
    """
    compared = frame.lazy().filter("answered", ~pl.col("out_of_scope"), pl.col(CORRECT).is_null())
    systems = compared.group_by("system", maintain_order=True).agg(pl.col("right").any()).filter(~pl.col("right"))
    warnings = []
    for system in systems.collect()["system"]:
        targets = frame["target"].explode().drop_nulls().unique(maintain_order=True)
        predictions = compared.filter(pl.col("system") == system).collect()["prediction"].unique(maintain_order=True)
        if not set(predictions) & set(targets):
            fault = _foreign(system, targets, predictions)
            if len(targets) > 1 and len(predictions) > 1:
                raise fault
            warnings.append(str(fault))
    return warnings


def _foreign(system: str, targets: pl.Series, predictions: pl.Series) -> DataError:
    shown = [", ".join(f'"{label}"' for label in labels.head(3)) for labels in (targets, predictions)]
    rule = f"no prediction occurs among the targets: targets are {shown[0]}, predictions {shown[1]}"
    fix = "are they coded differently? judged answers need a column correct"
    return DataError(rule, where=f'system "{system}":', fix=fix)
