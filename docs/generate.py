"""Writes the pages of the docs that follow from the code: measures, commands, and the demo's figures.

`python -m docs.generate` writes the pages, with `--figures` (as `make docs` does) the figures too;
`tests/test_docs.py` checks that the pages are current.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap
from typing import Any, get_args

from docs import cost, origins, worked

DOCS = Path(__file__).parent
SLURP = DOCS.resolve().parents[1] / "shared" / "data" / "slurp"
SLURP_PREDICTIONS = "slurp_published_predictions.jsonl.gz"
HERE = "<!-- Made from the code by `make docs`; do not edit. -->"


def measures_page() -> str:
    """The index of measures, from the registry and the docstrings, a section for each family."""
    from demur.nbest_lists.measures import NBEST
    from demur.returns.classes import CLASSES
    from demur.returns.measures import RETURNS
    from demur.returns.scope import SCOPE

    families = {
        "Answers with confidences": RETURNS,
        "In scope or out of scope": SCOPE,
        "Labels against labels": CLASSES,
        "N-best lists": NBEST,
    }
    kinds = dict.fromkeys(type(measure) for measures in families.values() for measure in measures.values())
    parts = []
    for title, measures in families.items():
        parts.append(f"## {title}")
        for kind in dict.fromkeys(type(measure) for measure in measures.values()):
            parts += _measures_of(kind, {name: one for name, one in measures.items() if type(one) is kind})
    homes = {name: (one, kind.__module__) for kind in kinds for name, one in vars(sys.modules[kind.__module__]).items()}
    modules = {name: getattr(homes[name][0], "__module__", homes[name][1]) for name in _free_names(parts)}
    return "\n\n".join(["# Measures", HERE, IMPORTS, _imports(modules), *parts]) + "\n"


IMPORTS = "The examples run after these imports:"


def _imports(modules: dict[str, str]) -> str:
    """Lines that import names from their modules."""
    lines = []
    for module in sorted(set(modules.values())):
        names = ", ".join(sorted(name for name, home in modules.items() if home == module))
        begin = f"from {module} import "
        lines += [begin + part.rstrip(",") for part in wrap(names, 110 - len(begin))]
    return "```python\n" + "\n".join(lines) + "\n```"


def _free_names(parts: list[str]) -> set[str]:
    """The names that the examples on a page use and do not define."""
    free: set[str] = set()
    for part in parts:
        if part.startswith("```pycon"):
            lines = [line[4:] for line in part.splitlines() if line.startswith((">>> ", "... "))]
            names = [one for one in ast.walk(ast.parse("\n".join(lines))) if isinstance(one, ast.Name | ast.alias)]
            defined = {one.asname or one.name for one in names if isinstance(one, ast.alias)}
            defined |= {one.id for one in names if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
            free |= {one.id for one in names if isinstance(one, ast.Name)} - defined - set(dir(builtins))
    return free


def _measures_of(kind: type, measures: dict[str, Any]) -> Iterator[str]:
    """What is said of the measures of one class: their names, how each is written, and its docstring."""
    about, _, example = (inspect.getdoc(kind) or "").partition(">>>")
    written = " ".join(f"`{measure!r}`" for measure in measures.values())
    better = next(iter(measures.values())).better
    yield f"### {', '.join(measures)}\n\n{written} · better: {better}\n\n{about.strip()}"
    if example:
        yield f"```pycon\n>>>{example.rstrip()}\n```"


def commands_page() -> str:
    """The reference of commands, from the command line's own declarations, by the panels of `demur --help`."""
    import typer

    from demur.apps.cli.app import app_of
    from demur.apps.cli.commands import PANELS

    commands: Any = typer.main.get_command(app_of()).commands  # type: ignore[attr-defined]
    shared = _widespread(commands)
    codes = "0 fine; 1 a gate failed, or a check found a fault; 2 usage or bad input; 3 internal error"
    parts = ["# Commands", HERE, f"Exit codes: {codes}."]
    for panel, names in PANELS.items():
        parts.append(f"## {panel}")
        parts += [part for name in names for part in _section(commands[name], f"demur {name}", "###", shared)]
    parts += ["## Options of many commands", SHARED_OPTIONS]
    for panel in dict.fromkeys(panel for panel, _ in shared):
        parts += [f"### {panel}", _options_table([row for home, row in shared if home == panel])]
    return "\n\n".join(parts) + "\n"


SHARED_OPTIONS = (
    "Each command names those that it takes. Where one of them means something else to a command, it stands in the "
    "table of that command. Every command takes `--seed`, also where nothing is random."
)
WIDESPREAD = 5
"""Commands from which an option with the same words stands in a table of its own."""


def _commands_of(command: Any) -> Iterator[Any]:
    """The command, or all commands of a group."""
    if hasattr(command, "commands"):
        for one in command.commands.values():
            yield from _commands_of(one)
    else:
        yield command


def _widespread(commands: dict[str, Any]) -> list[tuple[str, str]]:
    """Rows of options that many commands share, each after its panel; of one option the most frequent."""
    from demur.apps.cli.commands import OPTION_PANEL_OF

    counts = Counter(
        (parameter.name, _option_row(parameter))
        for command in commands.values()
        for one in _commands_of(command)
        for parameter in one.params
        if parameter.name in OPTION_PANEL_OF and not _is_idle(parameter)
    )
    most: dict[str, str] = {}
    for (name, row), count in counts.most_common():
        if count >= WIDESPREAD:
            most.setdefault(name, row)
    return [(panel, most[name]) for name, panel in OPTION_PANEL_OF.items() if name in most]


def _is_idle(parameter: Any) -> bool:
    """Whether this is the seed of a command in which nothing is random."""
    from demur.core.options import NoSeed

    return bool(getattr(parameter, "help", None) == get_args(NoSeed)[1].help)


def _section(command: Any, name: str, heading: str, shared: list[tuple[str, str]]) -> Iterator[str]:
    """A command: its help, its example, its own options, and the names of those that many have; or all of a group."""
    head = f"{heading} {name}\n\n{inspect.cleandoc(command.help or '')}"
    if hasattr(command, "commands"):
        yield head
        for part, one in command.commands.items():
            yield from _section(one, f"{name} {part}", f"{heading}#", shared)
        return
    yield f"{head}\n\n{command.epilog}"
    elsewhere = {row for _, row in shared}
    parameters = [one for one in command.params if one.name != "help" and not _is_idle(one)]
    rows = {_option_row(one): one.opts[0] for one in parameters}
    if own := [row for row in rows if row not in elsewhere]:
        yield _options_table(own)
    if others := [f"`{option}`" for row, option in rows.items() if row in elsewhere]:
        yield f"[Shared options](#options-of-many-commands): {', '.join(others)}."


def _options_table(rows: list[str]) -> str:
    return "\n".join(["| option | meaning | default |", "|---|---|---|", *rows])


def _option_row(parameter: Any) -> str:
    named = parameter.opts[0].startswith("-")
    called = parameter.opts if named else [(parameter.metavar or parameter.name).upper()]
    names = ", ".join(f"`{one}`" for one in called)
    value = parameter.default
    shown = value is not None and value is not False and not callable(value) and value != []
    default = f"`{value}`" if shown else ""
    return f"| {names} | {(getattr(parameter, 'help', '') or '').replace('|', chr(92) + '|')} | {default} |"


JSON_WORDS = """# JSON

%s

`--json` prints one document on standard output and nothing else; `-o FILE.json` writes the same, and so does
`to_dict()` in Python.

```console
$ demur score logs/mixed-noisy.jsonl --json --fail-if "error_at_nonreturn > 0.5" -o scores.json
...
```

## What documents share

Every document begins with `"format": 1`. While that number stays, keys are only added
([Compatibility](compatibility.md)), so ignore keys that you do not know.

| key | holds |
|---|---|
| `value`, `low`, `high` | a number and the ends of its interval; `level` is the confidence level, 0.95 by default |
| `why` | why a number, or its interval, is undefined; it is `null` then |
| `p`, `p_adjusted` | a p-value, and the same after correction for all tests of the document |
| `system`, `n` | the name of a system, and how many inputs it was given |
| `signature` | the measure with its parameters, the number of inputs, the digest of the data, the version |
| `error`, `nonreturn` | shares of all inputs: answered wrongly, and withheld |
| `threshold` | the least confidence that is returned; `null` returns nothing; infinite ones are `"inf"` and `"-inf"` |
| `verdict`, `better` | the result of a comparison in the words of `demur compare` |
| `notes`, `warnings` | sentences: what was assumed, and what to look at |

Rates lie in [0, 1]. Sentences may change in any release; names of keys may not.

## Keys of each command

The keys that the tests hold each command to. `[]` stands for each entry of a list, *with intervals* for numbers that
have `value`, `low` and `high`. Keys that are names of systems, columns or labels are those of the example.

"""


def json_page() -> str:
    """The reference of documents: the keys that `tests/golden/format-1.json` promises, command by command."""
    promised = json.loads((DOCS.parent / "tests" / "golden" / "format-1.json").read_text(encoding="utf-8"))
    parts = [(JSON_WORDS % HERE).rstrip()]
    for command, keys in promised.items():
        outline = "\n".join(_outline(keys))
        parts.append(f"### demur {command}\n\n```text\n{outline}\n```")
    return "\n\n".join(parts) + "\n"


INTERVAL = {"value", "low", "high"}
"""The keys of a number with its interval."""


def _outline(keys: dict[str, Any], depth: int = 0) -> Iterator[str]:
    """The keys of a document, those of values within values below them."""
    indent = "  " * depth
    if plain := [key for key, within in keys.items() if not within]:
        yield indent + ", ".join(plain)
    if numbers := [key for key, within in keys.items() if within.keys() == INTERVAL]:
        yield f"{indent}with intervals: {', '.join(numbers)}"
    alike: dict[str, list[str]] = {}
    for key, within in keys.items():
        if within and key not in numbers:
            alike.setdefault(json.dumps(within), []).append(key)
    for names in alike.values():
        within = keys[names[0]]
        yield f"{indent}{', '.join(names)}{'[]' if '[]' in within else ''}"
        yield from _outline(within.get("[]", within), depth + 1)


def python_page() -> str:
    """The reference of the public names, from their signatures and docstrings, in the order of `demur.__all__`."""
    import demur

    parts = ["# Python", HERE, "`import demur`. What functions give shows itself in notebooks, has `chart()`, `save()`"]
    parts[-1] += " for its figures and `to_dict()` for all its numbers; `repr` is a few lines."
    names: list[str] = []
    for name in demur.__all__:
        found = getattr(demur, name)
        if not name.startswith("_"):
            names += _reference(name, found)
            names += [part for method, one in _methods(found) for part in _reference(f"{name}.{method}", one, "###")]
    imports = _imports(dict.fromkeys(_free_names(names), "demur"))
    return "\n\n".join([*parts, IMPORTS, imports, *names]) + "\n"


def _reference(name: str, found: Any, heading: str = "##") -> Iterator[str]:
    """A public name: its signature and its docstring, examples as they are typed."""
    about, _, example = (inspect.getdoc(found) or "").partition(">>>")
    yield f"{heading} {name}"
    yield f"```text\n{_signature(name, found)}\n```"
    yield about.strip()
    if hasattr(found, "__wrapped__") and (options := _options(found)):  # the decorator of jobs wraps them
        yield "\n".join(["| option | meaning |", "|---|---|", *options])
    if example:
        yield f"```pycon\n>>>{example.rstrip()}\n```"


def _options(function: Any) -> list[str]:
    """A row for each option of a job, with what its declaration says of it."""
    from demur.core.jobs import Option, parameters

    declared = [(one.name, one.option.help) for one in parameters(function) if isinstance(one.option, Option)]
    flags = [(name, re.sub(r" ?Repeatable[.;]", "", text).replace("|", "\\|")) for name, text in declared]
    rows = [(name, re.sub(r"--([a-z][a-z-]+)", lambda flag: flag[1].replace("-", "_"), text)) for name, text in flags]
    return [f"| `{name}` | {text} |" for name, text in rows]


def _signature(name: str, found: Any) -> str:
    """How a function is called, one option a line; the defaults stand for the types."""
    try:
        parameters = inspect.signature(found).parameters.values()
    except ValueError:  # of a class that is made of C
        return name
    plain = [one.replace(annotation=one.empty) for one in parameters if one.name not in ("self", "step", "confirm")]
    kinds = [one.kind for one in plain]
    texts = [f"{one}" for one in plain]
    first = next((place for place, kind in enumerate(kinds) if kind is inspect.Parameter.KEYWORD_ONLY), None)
    if first is not None and inspect.Parameter.VAR_POSITIONAL not in kinds:
        texts.insert(first, "*")
    short = f"{name}({', '.join(texts)})"
    return short if len(short) <= 100 else f"{name}(\n" + "".join(f"    {text},\n" for text in texts) + ")"


def _methods(found: Any) -> list[tuple[str, Any]]:
    """The public methods that a class itself defines and explains."""
    own = vars(found).items() if inspect.isclass(found) else ()
    methods = [(name, getattr(found, name)) for name, one in own if not name.startswith("_") and _is_method(one)]
    return [(name, one) for name, one in methods if inspect.getdoc(one)]


def _is_method(one: Any) -> bool:
    return inspect.isfunction(one) or isinstance(one, classmethod | staticmethod)


GALLERY_PAGES = (
    "index",
    "reading",
    "report",
    "workbench",
    "nbest",
    "nbest_rewards",
    "nbest_paper",
    "outcome",
    "outcome_study",
    "gold_benchmark",
    "gold_components",
    "gold_curves",
    "gold_slurp",
    "study",
    "judges",
    "understanding",
    "understanding_experiments",
    "dialogue",
    "dialogue_experiments",
    *(f"origin_{one.name}" for one in origins.origins()),
    "cost",
)
BUNDLED = "src/demur/corpora/restaurant/turns.jsonl.gz"
SPEECH = "src/demur/corpora/museum/speech.jsonl"
GOLD = "demur gold trials.csv --x wer --y completed --cost cost.csv --gain 0.7:0.8"
OUTCOME = "demur outcome fit tutor.jsonl --outcomes gains.csv --features conf+scores.f"
LESIONS = "demur gold lesions.csv --x wer --y completed --components --no-checks"
PLAN = "demur plan trials.csv --x wer --y completed --subjects 8,16,32,64 --trials 20,40"
SLURPED = "demur gold slurp.csv --x wer --y correct --range 0:0.5 --no-checks --replicates 200"
SIMULATED = "demur simulate town --manager state-machine,mdp,belief,belief-learned --noise 0,0.15,0.3,0.45"
MADE = {
    "demo-noisy.svg": "demur demo -o plot.svg",
    "demo-clean.svg": "demur demo --figure comparison:2 -o plot.svg",
    "reading-example.svg": "python -m docs.worked plot.svg",
    "scale.svg": "python -m docs.cost plot.svg",
    "nbest-floor.svg": "demur experiment scorers -o plot.svg --figure floor",
    "nbest-parts.svg": f"demur nbest {BUNDLED} --map system=noise -o plot.svg --figure parts",
    "nbest-scorers.svg": "demur experiment scorers -o plot.svg",
    "nbest-conditions.svg": "demur experiment conditions --floor paper -o plot.svg",
    "nbest-lengths.svg": "demur experiment lengths -o plot.svg --figure ice",
    "nbest-lengths-wser.svg": "demur experiment lengths -o plot.svg --figure wser",
    "nbest-reward.svg": "demur experiment reward -o plot.svg",
    "nbest-oracle.svg": "demur experiment oracle -o plot.svg",
    "outcome-sets.svg": f"{OUTCOME} --sets -o plot.svg --figure sets",
    "outcome-coefficients.svg": f"{OUTCOME} -o plot.svg --figure coefficient",
    "outcome-observed.svg": f"{OUTCOME} -o plot.svg --figure observed",
    "outcome-prices.svg": f"{OUTCOME} -o plot.svg --figure price",
    "outcome-predicted.svg": "demur outcome compare study.json tutor.jsonl cautious.jsonl eager.jsonl -o plot.svg",
    "gold-benchmark.svg": f"{GOLD} -o plot.svg",
    "gold-impurity.svg": f"{GOLD} -o plot.svg --figure impurity",
    "gold-components.svg": f"{LESIONS} -o plot.svg --figure components",
    "gold-convergence.svg": f"{GOLD} -o plot.svg --figure convergence",
    "gold-wizards.svg": f"{GOLD} -o plot.svg --figure wizards",
    "gold-cost.svg": f"{GOLD} -o plot.svg --figure cost",
    "gold-plan.svg": f"{PLAN} -o plot.svg",
    "gold-residuals.svg": f"{GOLD} -o plot.svg --figure gold_residual",
    "gold-normality.svg": f"{GOLD} -o plot.svg --figure normality",
    "gold-slurp.svg": f"{SLURPED} --figure benchmark:2 -o plot.svg",
    "understanding-tokenizers.svg": "demur experiment tokenizers -o plot.svg",
    "understanding-bands.svg": "demur experiment tokenizers -o plot.svg --figure error_return",
    "understanding-speech.svg": f"demur experiment tokenizers --heard {SPEECH} -o plot.svg",
    "understanding-growth.svg": "demur experiment growth -o plot.svg",
    "understanding-gain.svg": "demur experiment growth -o plot.svg --figure error_return:2",
    "understanding-gate.svg": "demur experiment gate -o plot.svg",
    "dialogue-confusion.svg": "demur experiment confusion -o plot.svg",
    "dialogue-rewards.svg": f"{SIMULATED} --dialogues 300 --seed 1 -o plot.svg",
    "dialogue-figure2.svg": "demur experiment reward --simulate town --seed 1 -o plot.svg",
    "dialogue-predictors.svg": "demur experiment predictors -o plot.svg",
    "dialogue-thresholds.svg": "demur experiment thresholds -o plot.svg",
    "dialogue-injected.svg": "demur experiment injected -o plot.svg",
    "dialogue-learning.svg": "demur learn town --rounds 8 --dialogues 160 -o plot.svg",
}
"""The command that writes a picture, where the one shown before it does not."""

PAGES_SHOWN = {
    "report": "demur report logs/words-noisy.jsonl logs/mixed-noisy.jsonl -o report.html",
    "workbench": "demur serve --open",
    "study": "demur study serve museum",
    "judges": "demur judge log.jsonl",
}
"""The command that makes pages such as those on the pictures of a page of the docs."""

GALLERY = f"""\
Every figure with the command that makes it, and a link to where it is explained. Run the commands
in a clone of the project. Some read files that you make first:

- `trials.csv`, `lesions.csv`, `cost.csv`: the Python lines of [A gold study with known truth](gold_benchmark.md)
  write them.
- `slurp.csv`: those of [A gold standard on real data: SLURP](gold_slurp.md), from predictions that are not
  part of demur.
- `tutor.jsonl`, `gains.csv`, `cautious.jsonl`, `eager.jsonl`: those of [A study of outcomes](outcome_study.md).
  `{OUTCOME} --model study.json` writes `study.json`.
- Logs of other tools are the small ones in `tests/importers/data`; each page says which."""

FENCED = re.compile(r"^```(?:py|python|sh|json|toml|csv)\n.*?^```$", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"^!\[(.+?)\]\(images/(.+?)\)$|^#+ (.+)$|^(?:\$ |.*?`)(demur [^`\n]+)", re.MULTILINE)
"""A picture with its caption, a heading, or a command, whichever stands in a line."""


def gallery_page(made: dict[Path, str]) -> str:
    """Every picture of the docs with its command, in the order of pages, and a link to where it is explained.

    Generated pages are taken as they will be written.
    """
    parts = ["# Gallery", HERE, GALLERY]
    for name in GALLERY_PAGES:
        page = DOCS / f"{name}.md"
        text = FENCED.sub("", made.get(page) or page.read_text(encoding="utf-8"))
        title, shown = text.lstrip().partition("\n")[0].removeprefix("# "), []
        heading, command, screens = "", "", False
        for caption, file, place, typed in PICTURE.findall(text):
            if place:
                heading, command = place, ""
            elif typed:
                command = typed
            else:
                link = f"{name}.md" if heading == title else f"{name}.md#{_anchor(heading)}"
                screens |= file.endswith(".png")
                code = "" if file.endswith(".png") else f"\n\n```sh\n{MADE.get(file) or command}\n```"
                shown.append(f"[{heading}]({link}){code}\n\n![{caption}](images/{file})")
        if shown:
            parts += [f"## {title}", *([_screens(name)] if screens else []), *shown]
    return "\n\n".join(parts) + "\n"


def _screens(page: str) -> str:
    """What makes the screenshots of a page, and the pages on them."""
    return (
        f"`python -m docs.screens FOLDER` takes these pictures, with Chromium; `{PAGES_SHOWN[page]}` makes such pages."
    )


def _anchor(heading: str) -> str:
    """A heading as links name it."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip())


def pages() -> dict[Path, str]:
    """Every generated page with its content."""
    made = {
        DOCS / "measures.md": measures_page(),
        DOCS / "commands.md": commands_page(),
        DOCS / "python.md": python_page(),
        DOCS / "json.md": json_page(),
        DOCS / "cost.md": cost.page(),
        **{DOCS / f"{name}.md": text for name, text in origins.pages().items()},
    }
    return {**made, DOCS / "gallery.md": gallery_page(made)}


def figures() -> None:
    """The figures of the README and the guide, from the demo and the experiments."""
    from demur.core.options import Sampling
    from demur.core.show.page import save_chart
    from demur.lab.understanding_experiments import demonstrate, of_demonstration
    from demur.returns.presentation import of_comparison

    found = demonstrate(Sampling(), None)
    save_chart(of_demonstration(found).main_figure(), DOCS / "images" / "demo-noisy.svg")
    save_chart(of_comparison(found.comparisons["clean"]).main_figure(), DOCS / "images" / "demo-clean.svg")
    save_chart(cost.chart(cost.figures()), DOCS / "images" / "scale.svg")
    save_chart(worked.figure(), DOCS / "images" / "reading-example.svg")
    understanding_figures()
    nbest_figures()
    outcome_figures()
    gold_figures()
    origins.figures()


def understanding_figures() -> None:
    """Tokenizers, growth and two stages on the bundled museum guide, as their commands have them by default."""
    from demur.lab.corpora import domains, museum
    from demur.lab.noise import read_recorded
    from demur.lab.understanding_experiments import (
        gate_experiment,
        growth_experiment,
        of_experiment,
        split_corpus,
        tokenizer_experiment,
    )
    from demur.understanding.noise import WordChannel

    questions = split_corpus(museum())
    channel = WordChannel(questions.texts, wer=0.3)
    tokenizers = of_experiment(tokenizer_experiment(questions.in_scope(), channel=channel))
    _save("tokenizers", tokenizers.main_figure, "understanding")
    _save("bands", tokenizers.figure("error_return"), "understanding")
    recorded = read_recorded(DOCS.parent / "src" / "demur" / "corpora" / "museum" / "speech.jsonl")
    spoken = of_experiment(tokenizer_experiment(questions.only(recorded.texts), channel=recorded))
    _save("speech", spoken.main_figure, "understanding")
    grown = of_experiment(growth_experiment(questions.in_scope(), domains()))
    _save("growth", grown.main_figure, "understanding")
    _save("gain", grown.figures_named("error_return")[-1], "understanding")
    _save("gate", of_experiment(gate_experiment(questions)).main_figure, "understanding")


def nbest_figures() -> None:
    """Parts of the ICE, the ICE by floor, and Tables 2 and 3 and figures 1 to 3 of the paper, on the bundled data."""
    import demur
    from demur.lab import jobs as lab
    from demur.lab.corpora import restaurant
    from demur.lab.nbest_experiments import of_conditions, of_curves, of_lengths, of_scorers
    from demur.nbest_lists.presentation import of_nbest

    study = restaurant()
    lists = study.turns.select("id", "dialogue", "reference", "hypotheses")
    levels = study.dialogues["noise"].unique(maintain_order=True)
    by_noise = demur.nbest({level: lists.filter(study.turns["noise"] == level) for level in levels})
    _save("parts", of_nbest(by_noise).main_figure)
    scorers = of_scorers(lab.scorers())
    _save("scorers", scorers.main_figure)
    _save("floor", scorers.figure("floor"))
    _save("conditions", of_conditions(lab.conditions(floor="paper")).main_figure)
    lengths = of_lengths(lab.lengths())
    _save("lengths", lengths.figure("ice"))
    _save("lengths-wser", lengths.figure("wser"))
    _save("reward", of_curves(lab.reward()).main_figure)
    _save("oracle", of_curves(lab.oracle()).main_figure)


def outcome_figures() -> None:
    """The simulated study of a tutor: feature sets, coefficients, observed against predicted, prices, systems."""
    import polars as pl

    import demur
    from demur.lab import tutor
    from demur.outcome.presentation import of_fit, of_predictions

    turns, held = tutor.study()
    judged = demur.read(turns, out_of_scope=(), missing_confidence="lowest")
    fit = demur.fit_outcome(judged, outcomes=held, features="conf+scores.f", sets=True)
    shown = of_fit(fit)
    _save("observed", shown.figure("observed"), "outcome")
    _save("coefficients", shown.figure("coefficient"), "outcome")
    _save("prices", shown.figure("price"), "outcome")
    _save("sets", shown.figure("sets"), "outcome")
    rivals = {name: pl.DataFrame(tutor.answers(turns, name)) for name in ("cautious", "eager")}
    compared = demur.compare_outcomes(fit, {"tutor": pl.DataFrame(turns), **rivals})
    _save("predicted", of_predictions(compared).main_figure, "outcome")


def gold_figures() -> None:
    """The simulated study of wizards: figures 2 to 4 of the paper, components, checks, a plan; SLURP if at hand."""
    import demur
    from demur.gold_standard.presentation import of_plan, of_study
    from demur.lab.corpora import wizards

    bundled = wizards()
    (trials,) = demur.read_trials(bundled.trials, x="wer", y="completed")
    (study,) = demur.gold(trials, cost=bundled.folder / "cost.csv", gain=(0.7, 0.8))
    for name in ("benchmark", "impurity", "cost", "gold_residual", "normality", "wizards", "convergence"):
        _save({"gold_residual": "residuals"}.get(name, name), of_study(study).figure(name), "gold")
    (lesions,) = demur.gold(bundled.lesions, x="wer", y="completed", components=True, checks=False)
    _save("components", of_study(lesions).figure("components"), "gold")
    plan = demur.plan_gold(trials, subjects=(8, 16, 32, 64), trials_each=(20, 40))
    _save("plan", of_plan(plan).main_figure, "gold")
    if SLURP.is_dir():
        _save("slurp", _slurp_figure(), "gold")


def _slurp_figure() -> Callable[[], Any]:
    """The benchmark graph of the page on SLURP, whose own lines make the table."""
    import demur
    from demur.gold_standard.presentation import benchmark

    lines = re.search(
        r"^```py\n(.*?)^```$", (DOCS / "gold_slurp.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert lines is not None
    with TemporaryDirectory() as folder, chdir(folder):
        Path(SLURP_PREDICTIONS).symlink_to(SLURP / SLURP_PREDICTIONS)
        exec(compile(lines[1], "<page>", "exec"), {})
        studies = demur.gold("slurp.csv", x="wer", y="correct", within=(0, 0.5), checks=False, replicates=200)
    return benchmark(next(study for study in studies if study.trials.study == "multi"))


def _save(name: str, draw: Callable[[], Any], family: str = "nbest") -> None:
    from demur.core.show.page import save_chart

    save_chart(draw(), DOCS / "images" / f"{family}-{name}.svg")


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
    if "--figures" in sys.argv:
        figures()
    sys.stdout.write(f"pages{' and figures' if '--figures' in sys.argv else ''} written to {DOCS}\n")
