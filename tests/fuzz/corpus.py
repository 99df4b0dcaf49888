"""The sound inputs that are mutated: files of every format, made from a fixed seed, and the commands that read them."""

import gzip
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pyarrow as pa

from commands import run_in
from fuzz.sockets import feed_sockets, study_files
from importers.dstc_folders import corpus as dstc_folder
from nbest_lists.test_slf import ON_ARCS, ON_NODES

Files = dict[str, bytes]
Rows = list[dict[str, Any]]
Command = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """What is fed: files of which some are mutated, and the commands that read them, run where the files lie.

    `kind` says how they are mutated. A command that begins with `@` is a function of `fuzz.child`.
    """

    kind: str
    files: Mapping[str, bytes]
    mutated: tuple[str, ...]
    commands: tuple[Command, ...]


def lines(rows: Rows) -> bytes:
    """Rows as JSON, one a line."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def answers(rng: random.Random, n: int = 60) -> Rows:
    """Answers with all that a log may say of them."""
    rows = []
    for place in range(n):
        sure, target = round(rng.random(), 3), rng.choice(["yes", "no", "oos"])
        said = target if rng.random() < sure else rng.choice(["yes", "no"])
        row: dict[str, Any] = {"id": f"q{place}", "target": target, "prediction": said, "confidence": sure}
        row |= {"domain": rng.choice(["a", "b"]), "dialogue": f"d{place % 12}", "weight": rng.choice([1.0, 2.0])}
        rows.append(row | {"input": f"text {place}", "nbest": [{"label": said, "confidence": sure}]})
    return rows


def lists(rng: random.Random, n: int = 20) -> Rows:
    """N-best lists, with what a recogniser heard."""
    rows = []
    for place in range(n):
        food, sure = rng.choice(["thai", "chinese"]), round(rng.random(), 2)
        heard = [{"text": f"{food} food", "logprob": -0.3}, {"text": "ty food", "logprob": -1.5}]
        network = [{"arcs": [{"word": food, "score": -0.1}, {"word": "ty", "score": -2.5}]}]
        acts = [{"act": f"inform(food={food})", "confidence": sure}, {"act": "bye()", "confidence": round(1 - sure, 2)}]
        row = {"id": place, "dialogue": f"d{place % 4}", "reference": f"inform(food={food})", "hypotheses": acts}
        rows.append(row | {"asr": heard, "cnet": network, "noise": "low" if place % 2 else "high"})
    return rows


def trials(rng: random.Random) -> Rows:
    """Trials of people and of two systems."""
    return [
        {"performer": who, "subject": f"{who}{k % 3}", "wer": round(rng.random(), 2), "done": int(rng.random() < skill)}
        for who, skill in (("wizard", 0.9), ("A", 0.6), ("B", 0.5))
        for k in range(16)
    ]


def dialogues(rng: random.Random) -> Rows:
    """What dialogues achieved."""
    return [
        {
            "dialogue": f"d{k}",
            "pre": round(0.5 * rng.random(), 2),
            "post": round(0.5 + 0.4 * rng.random(), 2),
            "turns": k,
        }
        for k in range(12)
    ]


PAIRS: Rows = [
    {"input": "where are you from", "target": "home"},
    {"input": "where do you live", "target": "home"},
    {"input": "who are you", "target": "name"},
    {"input": "what is your name", "target": "name"},
    {"input": "are you a robot", "target": "robot"},
    {"input": "sing a song", "target": "oos"},
]

GRAMMAR = b"""title = "guide"
default_act = "inform"
ignore = ["uh", "um"]

[slots.food]
names = ["[the] (type|kind) of food"]
after = ["food"]
values = ["thai", "chinese"]

[slots.food.synonyms]
thai = ["ty", "tie"]

[[patterns]]
phrases = ["what [is] [the] {slot}"]
act = "request({slot})"
"""

_TEXTS: dict[str, Callable[[pl.DataFrame], bytes]] = {
    "csv": lambda frame: frame.write_csv().encode(),
    "tsv": lambda frame: frame.write_csv(separator="\t").encode(),
}


def columnar(frame: pl.DataFrame, ending: str) -> bytes:
    """A frame as a file of Parquet or Arrow."""
    buffer = BytesIO()
    writers = {"parquet": frame.write_parquet, "arrow": frame.write_ipc, "arrows": frame.write_ipc_stream}
    writers[ending](buffer)
    return buffer.getvalue()


def flat(rows: Rows) -> pl.DataFrame:
    """Rows as a frame of plain cells."""
    return pl.DataFrame([{k: json.dumps(v) if isinstance(v, list) else v for k, v in row.items()} for row in rows])


_QUICK = ("--json", "--replicates", "50")


def _log_commands(name: str) -> tuple[Command, ...]:
    return (
        ("score", name, "--by", "domain", *_QUICK),
        ("score", name, "--map", "dialogue=id", "--where", "domain=a", *_QUICK),
        ("score", name, "-o", "made.sweep", *_QUICK),
        ("validate", name),
        ("classes", name, *_QUICK),
        ("threshold", name, "--max-error", "0.3", *_QUICK),
        ("compare", name, "other.jsonl", *_QUICK),
        ("report", name, "-o", "made.md", "-o", "made.json", *_QUICK[1:]),
        ("nbest", name, *_QUICK),
        ("add", name, "--store", "store"),
        ("follow", name, "--until-idle", "0.01", *_QUICK),
    )


def _engine_commands(name: str) -> tuple[Command, ...]:
    return (
        ("score", name, "--engine", "polars", "--by", "domain", *_QUICK),
        ("score", name, "--engine", "duckdb", "--check-ids", *_QUICK),
        ("classes", name, "--engine", "polars", *_QUICK),
    )


def _folder(make: Callable[[Path], object]) -> Files:
    """The files that something writes into a folder."""
    with TemporaryDirectory() as folder:
        make(Path(folder))
        found = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def _made_here(folder: Path) -> None:
    """A sweep, models and a store, as this version writes them."""
    rng = random.Random(7)
    for name, rows in (("log", answers(rng)), ("calls", dialogues(rng)), ("pairs", PAIRS)):
        (folder / f"{name}.jsonl").write_bytes(lines(rows))
    for command in (
        ("score", "log.jsonl", "--by", "domain", "-o", "log.sweep", "--quiet"),
        ("outcome", "fit", "log.jsonl", "--outcomes", "calls.jsonl", "--features", "full", "--model", "model.json"),
        ("understand", "train", "pairs.jsonl", "-o", "guide"),
        ("add", "log.jsonl", "--store", "store"),
        ("add", "calls.jsonl", "--store", "store"),
    ):
        done = run_in(folder, *command)
        if done.returncode:
            raise RuntimeError(f"{command}: {done.stderr}")


def _zstd(content: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(content, asbytes=True))


def targets() -> dict[str, Target]:
    """Every format with what is fed of it."""
    rng = random.Random(16)
    log, other = answers(rng), lines(answers(rng))
    found: dict[str, Target] = {}

    def add(name: str, kind: str, files: Files, commands: tuple[Command, ...], mutated: tuple[str, ...] = ()) -> None:
        found[name] = Target(kind, files, mutated or tuple(files)[:1], commands)

    drawn = (
        ("report", "log.jsonl", "-o", "made.html", *_QUICK[1:]),
        ("score", "log.jsonl", "--by", "domain", "-o", "made.svg"),
    )
    add("jsonl", "jsonl", {"log.jsonl": lines(log), "other.jsonl": other}, (*_log_commands("log.jsonl"), *drawn))
    add("json", "json", {"log.json": json.dumps(log).encode(), "other.jsonl": other}, _log_commands("log.json"))
    for ending, write in _TEXTS.items():
        add(ending, ending, {f"log.{ending}": write(flat(log)), "other.jsonl": other}, _log_commands(f"log.{ending}"))
    for ending in ("parquet", "arrow", "arrows"):
        name = f"log.{ending.removesuffix('s') if ending == 'arrows' else ending}"
        commands = _log_commands(name) + (_engine_commands(name) if ending != "arrows" else ())
        add(ending, ending, {name: columnar(flat(log), ending), "other.jsonl": other}, commands)
    for ending, pack in (("gz", gzip.compress), ("zst", _zstd)):
        name = f"log.jsonl.{ending}"
        add(ending, ending, {name: pack(lines(log)), "other.jsonl": other}, _log_commands(name))
    add_foreign(add)
    add_questions(add, rng)
    add_study(add)
    made = _folder(_made_here)
    add_made(add, made)
    return found


FOREIGN = Path(__file__).parents[1] / "importers" / "data"
"""Trimmed logs of other tools."""

_FOREIGN: Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "inspect": ("zip", ("inspect_choice.eval",), ()),
    "inspect_json": ("json", ("inspect_verbalised-2epochs.json",), ("--scorer", "verbalised")),
    "lm_eval": ("jsonl", ("lm_eval_samples_gen.jsonl",), ()),
    "promptfoo": ("json", ("promptfoo.json",), ()),
    "promptfoo_csv": ("csv", ("promptfoo.csv",), ()),
    "rasa": ("json", ("rasa_intent_errors.json", "rasa_intent_successes.json"), ()),
    "squad": ("json", ("squad_nbest.json", "squad_null_odds.json", "squad_references.json"), ()),
    "arrays": ("zip", ("sklearn_all.npz",), ()),
    "huggingface": ("jsonl", ("hf_text-classification_topk_with_gold.jsonl",), ()),
    "mlflow": ("json", ("mlflow_genai.json",), ()),
    "openai_evals": ("jsonl", ("openai_evals.jsonl",), ()),
    "langsmith": ("csv", ("langsmith.csv",), ()),
    "lighteval": ("parquet", ("lighteval_details.parquet",), ()),
    "deepeval": ("json", ("deepeval_test_run.json",), ()),
}
"""By name: how files are mutated, the files, and the options that they are read with."""


def add_foreign(add: Callable[..., None]) -> None:
    """Logs of other tools."""
    for name, (kind, files, options) in _FOREIGN.items():
        held = {file: (FOREIGN / file).read_bytes() for file in files}
        add(name, kind, held, (("score", *files, *options, *_QUICK), ("validate", *files, *options)), files)


def add_questions(add: Callable[..., None], rng: random.Random) -> None:
    """What the other questions read."""
    heard = lists(rng)
    asked = ("nbest", "lists.jsonl", *_QUICK)
    add(
        "lists",
        "jsonl",
        {"lists.jsonl": lines(heard)},
        (
            (*asked, "--by", "noise"),
            (*asked, "--items", "dstc"),
            (*asked[:2], "-o", "made.html", *_QUICK[1:]),
            ("validate", "lists.jsonl"),
            ("report", "lists.jsonl", "-o", "made.md", *_QUICK[1:]),
            ("add", "lists.jsonl", "--store", "store"),
        ),
    )
    spoken = {"grammar.toml": GRAMMAR, "lists.jsonl": lines(heard)}
    scored = ("nbest", "lists.jsonl", "--grammar", "grammar.toml", *_QUICK, "--scorer")
    add("grammar", "toml", spoken, ((*scored, "infev"), (*scored, "avgword")))
    add("heard", "jsonl", spoken, ((*scored, "infev"), (*scored, "const")), ("lists.jsonl",))
    add(
        "lists_parquet",
        "parquet",
        {"lists.parquet": columnar(flat(heard), "parquet")},
        (("nbest", "lists.parquet", *_QUICK),),
    )
    cost = b"performance,amount\n0.5,100\n0.7,180\n0.9,400\n"
    gold = ("gold", "trials.csv", "--x", "wer", "--y", "done", "--no-checks", *_QUICK)
    add(
        "trials",
        "csv",
        {"trials.csv": flat(trials(rng)).write_csv().encode(), "cost.csv": cost},
        (
            gold,
            (*gold, "-o", "made.html"),
            (*gold, "--cost", "cost.csv", "--gain", "0.6:0.8"),
            ("gold", "trials.csv", "--no-checks", *_QUICK),
        ),
        ("trials.csv", "cost.csv"),
    )
    calls = flat(dialogues(rng)).write_csv().encode()
    add(
        "dialogues",
        "csv",
        {"calls.csv": calls, "log.jsonl": lines(answers(rng))},
        (
            (
                "outcome",
                "fit",
                "log.jsonl",
                "--outcomes",
                "calls.csv",
                "--features",
                "full",
                "--json",
                "--replicates",
                "0",
            ),
            ("outcome", "regress", "calls.csv", "--outcome", "post", "--json", "--replicates", "0"),
        ),
        ("calls.csv", "log.jsonl"),
    )
    add("pairs", "jsonl", {"pairs.jsonl": lines(PAIRS)}, (("understand", "train", "pairs.jsonl", "-o", "guide"),))
    lattices = {"u1.lat": ON_ARCS.encode(), "u2.lat": ON_NODES.encode()}
    slf = ("import", "slf", "u1.lat", "u2.lat", "-o", "made.jsonl")
    add("slf", "text", lattices, (slf, (*slf, "--prune", "0.1", "--lmscale", "2")), tuple(lattices))
    files = {f"dstc/{name}": content for name, content in _folder(lambda folder: dstc_folder(folder)).items()}
    commands = tuple(
        ("import", kind, "dstc", "--table", table, "-o", "made.jsonl")
        for kind, table in (("dstc2", "nbest"), ("dstc2", "turns"), ("dstc2", "dialogues"), ("dstc3", "nbest"))
    )
    add("dstc", "document", files, commands, tuple(files))
    add("options", "options", {"log.jsonl": lines(answers(rng)), "other.jsonl": lines(answers(rng))}, _OPTIONS, ())


_OPTIONS: tuple[Command, ...] = (
    ("score", "log.jsonl", "--by", "domain", "--where", "domain=a", "--fail-if", "aurc > 0.9", "--replicates", "50"),
    (
        "score",
        "log.jsonl",
        "--at-nonreturn",
        "0.2",
        "--at-error",
        "0.05",
        "--level",
        "0.9",
        "--region",
        "0:0.5",
        "--json",
    ),
    ("compare", "log.jsonl", "other.jsonl", "--fail-if", "other is significantly worse", "--replicates", "50"),
    ("threshold", "log.jsonl", "--cost-ratio", "3", "--json"),
    ("score", "log.jsonl", "--map", "dialogue=id", "--name", "mine", "-o", "made.md", "--seed", "3", "--json"),
)


def add_study(add: Callable[..., None]) -> None:
    """Messages to the sockets of a study, its design, its journal, and guidelines of judges."""
    files = study_files()
    add("sockets", "jsonl", files, (("@sockets", "study"),), ("study/messages.jsonl",))
    read: tuple[Command, ...] = (("study", "status", "study"), ("study", "export", "study"), ("gold", "study"))
    add("design", "text", files, read[:1], ("study/study.toml",))
    journal = _folder(_written_journal)
    add("journal", "bytes", journal, read, ("study/journal.sqlite",))
    judge = ("judge", "log.jsonl", "--guidelines", "labels.toml", "--dry-run")
    log = {"log.jsonl": lines([{"input": "a", "prediction": "b"}]), "labels.toml": LABELS.encode()}
    add("guidelines", "text", log, (judge,), ("labels.toml",))


LABELS = """
question = "Is it right?"
guidelines = "Judge what is said."
[[label]]
name = "yes"
means = "right"
[[label]]
name = "no"
means = "wrong"
key = "n"
"""


def _written_journal(folder: Path) -> None:
    for name, content in study_files().items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    feed_sockets(folder / "study")


def add_made(add: Callable[..., None], made: Files) -> None:
    """What this version writes for itself to read."""
    log = {"log.jsonl": made["log.jsonl"]}
    sweeps = {"log.sweep": made["log.sweep"], "second.sweep": made["log.sweep"]}
    merge = ("merge", "log.sweep", "second.sweep", "--allow-repeats", *_QUICK)
    add(
        "sweep",
        "zip",
        sweeps,
        (("merge", "log.sweep", *_QUICK), merge, ("compare", "log.sweep", "second.sweep", *_QUICK)),
    )
    guide = {name: content for name, content in made.items() if name.startswith("guide/")}
    respond = ("understand", "respond", "guide", "pairs.jsonl", "--json")
    add("model", "model", {**guide, "pairs.jsonl": made["pairs.jsonl"]}, (respond,), tuple(guide))
    model = {"model.json": made["model.json"], **log, "calls.jsonl": made["calls.jsonl"]}
    predict = ("outcome", "predict", "model.json", "log.jsonl", "--json")
    add("outcome", "outcome", model, (predict, (*predict, "--extrapolate"), (*predict, "--pooled")))
    store = {name: content for name, content in made.items() if name.startswith("store/") and "sqlite" not in name}
    index = {name: content for name, content in made.items() if name.startswith("store/") and "sqlite" in name}
    runs: tuple[Command, ...] = (("runs", "--store", "store", "--json"), ("@store", "store"))
    add("store", "store", {**store, **log}, (*runs, ("runs", "--check", "--store", "store")), tuple(store))
    add("index", "bytes", {**store, **index}, runs, tuple(index))
    settings = {"store/store.settings.json": json.dumps({"replicates": 500, "level": 0.9}).encode()}
    add("settings", "document", {**store, **settings}, (("@settings", "store"),), tuple(settings))
