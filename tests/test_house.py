"""The shape of the code: which way imports point, how large things are, and what loads when."""

import ast
import doctest
import importlib
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

import demur

ROOT = Path(demur.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
LAYERS = {
    "errors": 0,
    "show": 1,
    "core": 2,
    "data": 3,
    "measures": 4,
    "systems": 4,
    "analyses": 5,
    "returns": 6,
    "views": 7,
    "store": 7,
    "api": 8,
    "apps": 9,
}
"""Height of each part: a module imports from its own part or from lower ones; parts side by side not each other."""

MAY_ALSO_BE_IMPORTED = {"__version__"}
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
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc"}

each_module = pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))


def part_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path):
    """Dotted names of everything a module imports from the package, at the top or inside functions."""
    found = []
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return [name.split(".") for name in found if name.split(".")[0] == "demur"]


def functions(path):
    return [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def lines_of(function):
    """Lines of a function from `def` to its end, its docstring and decorators apart."""
    first = function.body[0]
    has_words = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    words = first.end_lineno - first.lineno + 1 if has_words else 0
    return function.end_lineno - function.lineno + 1 - words


@each_module
def test_imports_point_one_way(path):
    part = part_of(path)
    if part in ("__init__", "corpora"):
        return
    for names in imported(path):
        if len(names) > 1 and names[1] not in MAY_ALSO_BE_IMPORTED:
            assert names[1] in LAYERS, f"{'.'.join(names)} is no part of the package that may be imported"
            height = LAYERS[names[1]]
            assert names[1] == part or height < LAYERS[part], f"{part} imports {'.'.join(names)}"


def test_every_part_has_its_place():
    parts = {part_of(path) for path in MODULES if "__pycache__" not in path.parts}
    assert parts - {"__init__", "__main__", "corpora"} <= LAYERS.keys()


def test_corpora_hold_data_only():
    for path in (ROOT / "corpora").rglob("*.py"):
        assert [type(node) for node in tree_of(path).body] == [ast.Expr], "a docstring is all the code there is"


@each_module
def test_names_of_modules_say_what_is_in_them(path):
    assert not VAGUE & {piece.removesuffix(".py") for piece in path.relative_to(ROOT).parts}


@each_module
def test_names_of_functions_do_not_start_with_empty_verbs(path):
    names = [function.name.lstrip("_") for function in functions(path)]
    empty = [name for name in names if name.startswith(("get_", "do_", "handle_"))]
    assert not set(empty) - {"get_params"}, "only scikit-learn's own name is let through"


@each_module
def test_files_are_shorter_than_400_lines(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) < 400


@each_module
def test_no_function_is_longer_than_60_lines(path):
    assert not {function.name: lines_of(function) for function in functions(path) if lines_of(function) > 60}


def test_half_of_all_functions_are_shorter_than_12_lines():
    assert median(lines_of(function) for path in MODULES for function in functions(path)) < 12


@each_module
def test_only_apps_print(path):
    if part_of(path) == "apps":
        return
    calls = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call)]
    assert not [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]


@each_module
def test_no_notes_to_self_are_left(path):
    text = path.read_text(encoding="utf-8")
    assert not [word for word in ("TODO", "FIXME", "XXX", "HACK") if word in text]


@each_module
def test_randomness_is_never_global(path):
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("np.random", "numpy.random"):
            assert node.attr in ("default_rng", "Generator", "SeedSequence"), f"np.random.{node.attr}"
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("default_rng"):
            assert node.args, f"line {node.lineno}: a generator needs a seed"


@pytest.mark.parametrize("module", ["demur", "demur.apps.cli.main"])
def test_importing_loads_nothing_heavy(module):
    if importlib.util.find_spec(module) is None:
        pytest.fail(f"{module} is not there")
    code = f"import sys, {module}; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@each_module
def test_examples_in_docstrings_run(path):
    name = ".".join(["demur", *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__")
    if name.endswith("__main__"):
        return
    assert doctest.testmod(importlib.import_module(name)).failed == 0
