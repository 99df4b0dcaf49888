"""The inputs of the golden cases: files that the pages show or write, bundled corpora and cuts of these.

The logs of the demo are kept in `logs/`: confidences that are computed differ in the last bit between processors.
"""

import gzip
import shutil
from pathlib import Path

import polars as pl

from importers.dstc_folders import corpus
from pages import README, ROOT, blocks, read_page, run_python, write_files

PAGES = ("nbest", "outcome", "gold", "understanding")


def write_inputs(folder: Path) -> None:
    """Write everything that the cases read and no case writes."""
    for text in (README, *map(read_page, PAGES)):
        write_files(text, folder)
    for name in ("museum/questions.jsonl", "restaurant/turns.jsonl.gz", "wizards/trials.csv", "domains/bees.txt"):
        for file in _bundled(name).parent.iterdir():
            shutil.copy(file, folder)
    (folder / "logs").mkdir()
    for file in (Path(__file__).parent / "logs").iterdir():
        (folder / "logs" / file.stem).write_bytes(gzip.decompress(file.read_bytes()))
    _write_dated(folder)
    _write_heaps(folder)
    _write_lists(folder)
    _write_judgements(folder)
    _write_student_answers(folder)
    run_block("outcome", 'write_ndjson("tutor.jsonl")', folder)
    corpus(folder / "dstc")
    for file in (ROOT / "tests" / "importers" / "data").glob("*.json"):
        if file.name.startswith(("inspect_choice", "rasa_intent")):
            shutil.copy(file, folder)
    shutil.copy(ROOT / "tests" / "outcome" / "r_oracle" / "mtcars.csv", folder)


def _bundled(name: str) -> Path:
    """A bundled file, wherever the package keeps it."""
    (file,) = (ROOT / "src").rglob(name)
    return file


def _write_dated(folder: Path) -> None:
    """A log of the demo with a date for each answer, 16 a day."""
    answers = pl.read_ndjson(folder / "logs" / "mixed-noisy.jsonl")
    date = pl.date(2025, 12, 18) + pl.duration(days=pl.int_range(pl.len()) // 16)
    answers.with_columns(date=date.cast(pl.String)).write_ndjson(folder / "dated.jsonl")


def _write_heaps(folder: Path) -> None:
    """A log whose confidences are rounded as people and language models say them."""
    log = pl.read_ndjson(folder / "logs" / "mixed-noisy.jsonl")
    length = pl.when(pl.col("input").str.len_chars() < 30).then(pl.lit("short")).otherwise(pl.lit("long"))
    said = log.with_columns(confidence=(pl.col("confidence") * 5).round() / 5, length=length)
    said.write_ndjson(folder / "logs" / "said-confidences.jsonl")


def _write_lists(folder: Path) -> None:
    """The halves of the bundled trial that the page on N-best lists cuts, and a hundred of its dialogues."""
    turns = pl.read_ndjson(folder / "turns.jsonl.gz")
    number = pl.col("dialogue").str.slice(1).cast(pl.Int64) - 1
    first = number // 2 % 2 == 0
    columns = ("id", "dialogue", "noise", "manager", "reference", "hypotheses")
    turns.filter(first).select(columns).write_ndjson(folder / "first.jsonl")
    turns.filter(~first).select(columns).write_ndjson(folder / "second.jsonl")
    some = turns.filter(number < 100)
    some.select("id", "dialogue", "reference", "cnet").write_ndjson(folder / "networks.jsonl")
    some.write_ndjson(folder / "some.jsonl")


def _write_judgements(folder: Path) -> None:
    """What three judges say of 60 answers; the third leaves every fourth out and is stricter."""
    said = [
        {"item": f"a{k:02d}", "judge": judge, "label": "right" if (k * 7) % 10 > limit else "wrong"}
        for k in range(60)
        for judge, limit in (("anna", 3), ("ben", 4), ("cleo", 5))
        if judge != "cleo" or k % 4
    ]
    pl.DataFrame(said).write_csv(folder / "judgements.csv")


def _write_student_answers(folder: Path) -> None:
    """What students say to questions on bees, with marks, and what a tutor logs of four of them."""
    facts = (folder / "bees.txt").read_text(encoding="utf-8").split("\n")[:12]
    rows = []
    for k, fact in enumerate(facts):
        words = fact.split()
        said = {
            "correct": fact,
            "pc_incomplete": " ".join(words[: len(words) // 2]),
            "contradictory": f"{' '.join(words[:2])} not {facts[k - 1]}",
            "non_content": "I do not know",
        }
        about = {"question": f"What do you know of {' '.join(words[:3]).lower()}?", "expected": fact}
        rows += [{**about, "answer": answer, "target": label} for label, answer in said.items()]
    pl.DataFrame(rows).write_ndjson(folder / "student-answers.jsonl")
    acts = {
        "correct": {"speech_act": "answer", "matched": ["path"]},
        "pc_incomplete": {"speech_act": "answer", "matched": ["path"], "not_mentioned": ["battery"]},
        "contradictory": {"speech_act": "uninterpretable"},
        "non_content": {"speech_act": "help request"},
    }
    empty = {"matched": [], "contradictory": [], "not_mentioned": []}
    log = [{"id": k, "target": label, **empty, **act} for k, (label, act) in enumerate(acts.items(), start=1)]
    pl.DataFrame(log).write_ndjson(folder / "tutor-log.jsonl")


def run_block(page: str, line: str, folder: Path) -> None:
    """Run the Python block of a page that has this line."""
    (code,) = [block for block in blocks("python", read_page(page)) if line in block]
    run_python(code, folder)
