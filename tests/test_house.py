"""The shape of the code: which way imports point, how large things are, and what loads when."""

import ast
import doctest
import gc
import importlib
import subprocess
import sys
from collections import defaultdict
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from statistics import median

import pytest

import demur

ROOT = Path(demur.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
QUESTIONS = ("returns", "nbest_lists", "outcome", "gold_standard", "understanding")
BELOW = {
    "errors": (),
    "corpora": (),
    "core": ("errors",),
    "importers": ("errors", "core"),
    "returns": ("errors", "core", "importers"),
    "nbest_lists": ("errors", "core", "importers", "returns"),
    "outcome": ("errors", "core", "importers", "returns"),
    "gold_standard": ("errors", "core", "importers", "returns"),
    "judges": ("errors", "core", "importers", "returns"),
    "understanding": ("errors", "core", "importers", "returns", "nbest_lists"),
    "reports": ("errors", "core", "importers", *QUESTIONS),
    "store": ("errors", "core", "importers", *QUESTIONS),
    "study": ("errors", "core", "importers", *QUESTIONS),
    "lab": ("errors", "core", "importers", *QUESTIONS, "reports"),
    "apps": ("errors", "core", "importers", *QUESTIONS, "judges", "reports", "store", "study", "lab"),
    "integrations": ("errors", "core", "importers", "returns", "reports", "store", "apps"),
}
"""What each part of the package may import, besides itself."""

HEAVY = (
    "polars",
    "numpy",
    "scipy",
    "altair",
    "sklearn",
    "narwhals",
    "pandas",
    "pyarrow",
    "duckdb",
    "pyspark",
    "vl_convert",
    "starlette",
    "uvicorn",
    "jinja2",
)
OF_OTHERS = ("integrations/inspect.py",)
"""Modules that only the tool they extend can load."""
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc"}
MOST_HELPERS_OF_A_NAME = 4
LONGEST_FILE, LONGEST_FUNCTION, MOST_IN_A_FOLDER = 700, 60, 30
MOST_LOADED = 90
"""Modules of the package that scoring a log may load, one less."""


def part_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def dotted(path):
    return ".".join(["demur", *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__")


@cache
def text_of(path):
    return path.read_text(encoding="utf-8")


@cache
def trees():
    """Every module parsed, without looking for garbage meanwhile, which takes longer than the parsing."""
    gc.disable()
    found = {path: ast.parse(text_of(path)) for path in MODULES}
    gc.enable()
    return found


def tree_of(path):
    return trees()[path]


@cache
def nodes_of(path):
    return tuple(ast.walk(tree_of(path)))


@cache
def imported(path):
    """Dotted names of everything a module imports from the package, at the top or inside functions."""
    found = []
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return [name.split(".") for name in found if name.split(".")[0] == "demur"]


def functions(path):
    return [node for node in nodes_of(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def length_of(function):
    """Lines of a function from `def` to its end, its docstring and decorators apart."""
    first = function.body[0]
    has_docstring = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    docstring = first.end_lineno - first.lineno + 1 if has_docstring else 0
    return function.end_lineno - function.lineno + 1 - docstring


def test_imports_point_one_way():
    wrong = [
        f"{name_of(path)} imports {'.'.join(names)}"
        for path in MODULES
        for names in imported(path)
        if len(names) > 1
        and names[1] not in ("__version__", part_of(path))
        and part_of(path) not in ("__init__", "__main__")
        and names[1] in BELOW
        and names[1] not in BELOW[part_of(path)]
    ]
    assert not wrong


def loaded_first(path, names):
    """Modules of the package that importing this one loads: what it names outside of functions and type checks."""
    for node in tree_of(path).body:
        if isinstance(node, ast.ImportFrom):
            wholes = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (whole if whole in names else node.module for whole in wholes)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_no_modules_import_each_other_in_a_circle():
    names = {dotted(path): path for path in MODULES}
    graph = {name: names.keys() & set(loaded_first(path, names)) for name, path in names.items()}
    assert len(list(TopologicalSorter(graph).static_order())) == len(names)


def test_every_part_has_its_place():
    assert {part_of(path) for path in MODULES} - {"__init__", "__main__"} == BELOW.keys()


def test_corpora_hold_data_only():
    for path in (ROOT / "corpora").rglob("*.py"):
        assert [type(node) for node in tree_of(path).body] == [ast.Expr], "a docstring is all the code"


def test_names_of_modules_say_what_is_in_them():
    vague = [name_of(path) for path in MODULES if VAGUE & {piece.removesuffix(".py") for piece in path.parts}]
    assert not vague


def test_names_of_functions_do_not_start_with_empty_verbs():
    names = {function.name.lstrip("_") for path in MODULES for function in functions(path)}
    empty = {name for name in names if name.startswith(("get_", "do_", "handle_"))}
    assert not empty - {"get_params"}, "only scikit-learn's own name is let through"


def test_files_functions_and_folders_have_their_limits():
    files = {name_of(path): text_of(path).count("\n") for path in MODULES}
    assert not {name: lines for name, lines in files.items() if lines > LONGEST_FILE}
    long = [
        f"{name_of(path)}: {one.name}"
        for path in MODULES
        for one in functions(path)
        if length_of(one) > LONGEST_FUNCTION
    ]
    assert not long
    folders = defaultdict(int)
    for path in MODULES:
        folders[path.parent] += 1
    assert not {str(folder): count for folder, count in folders.items() if count > MOST_IN_A_FOLDER}


def test_one_name_is_one_thing():
    classes, helpers = defaultdict(list), defaultdict(list)
    for path in MODULES:
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(name_of(path))
            elif isinstance(node, ast.FunctionDef) and node.name.startswith("_"):
                helpers[node.name].append(name_of(path))
    assert not {name: paths for name, paths in classes.items() if len(paths) > 1}
    assert not {name: paths for name, paths in helpers.items() if len(paths) > MOST_HELPERS_OF_A_NAME}
    assert [name_of(path) for path in MODULES if "\nArray = NDArray" in text_of(path)] == ["core/arrays.py"]


def test_half_of_all_functions_are_shorter_than_12_lines():
    assert median(length_of(function) for path in MODULES for function in functions(path)) < 12


def plain_channels(path):
    """Channels of charts that are given as text, lists of text or dicts, or by `alt.value` and `alt.condition`."""
    calls = [one for one in nodes_of(path) if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)]
    for word in (word for call in calls if call.func.attr == "encode" for word in call.keywords):
        for value in getattr(word.value, "elts", [word.value]):
            plain = isinstance(value, ast.Constant | ast.JoinedStr | ast.Dict)
            if plain or ast.unparse(value).startswith(("alt.value(", "alt.condition(")):
                yield f"{name_of(path)}:{value.lineno}: {word.arg}={ast.unparse(value)}"


def test_channels_of_charts_are_objects():
    """Altair turns anything else into one by hashing the whole schema of Vega-Lite, 8 ms for each channel."""
    charts = [path for path in MODULES if ["demur", "core", "show", "charts", "alt"] in imported(path)]
    found = [line for path in [*charts, ROOT / "core/show/charts.py"] for line in plain_channels(path)]
    assert len(charts) > 8
    assert not found


def test_only_apps_print():
    printing = [
        f"{name_of(path)}:{node.lineno}"
        for path in MODULES
        if part_of(path) != "apps"
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert not printing


def test_no_notes_to_self_are_left():
    words = ("TODO", "FIXME", "XXX", "HACK")
    assert not [(name_of(path), word) for path in MODULES for word in words if word in text_of(path)]


def test_randomness_is_never_global():
    for path in MODULES:
        for node in nodes_of(path):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("np.random", "numpy.random"):
                assert node.attr in ("default_rng", "Generator", "SeedSequence"), (
                    f"{name_of(path)}: np.random.{node.attr}"
                )
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("default_rng"):
                assert node.args, f"{name_of(path)}:{node.lineno}: a generator needs a seed"


@pytest.mark.parametrize("module", ["demur", "demur.apps.cli.main"])
def test_importing_loads_nothing_heavy(module):
    if importlib.util.find_spec(module) is None:
        pytest.fail(f"{module} is not there")
    code = f"import sys, {module}; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_scoring_a_log_loads_few_modules_and_none_of_other_questions(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text('{"target": "a", "prediction": "a", "confidence": 0.9}\n' * 3, encoding="utf-8")
    code = (
        "import sys, atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        f"sys.argv = ['demur', 'score', {str(log)!r}, '--json']\n"
        "from demur.apps.cli.main import run; run()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = [name.split(".") for name in done.stderr.splitlines()[-1].split() if name.startswith("demur.")]
    assert len(loaded) < MOST_LOADED
    assert not {parts[1] for parts in loaded} & {*QUESTIONS, "reports", "store", "study", "lab"} - {"returns"}
    assert ["demur", "apps", "web"] not in loaded


@pytest.mark.parametrize("part", sorted({"__init__", *BELOW}))
def test_examples_in_docstrings_run(part):
    failed = []
    for path in MODULES:
        if part_of(path) == part and path.stem != "__main__" and name_of(path) not in OF_OTHERS:
            failed += [name_of(path)] * doctest.testmod(importlib.import_module(dotted(path))).failed
    assert not failed
