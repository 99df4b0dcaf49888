import numpy as np
import pytest

from demur.core.stats.resampling import Rows, Sample
from demur.returns.comparison.compare import compare
from demur.returns.evaluate import evaluate
from demur.returns.table import responses
from demur.returns.threshold import threshold_by_cost


def answers(system, *, n=240, accuracy=0.75, gap=1.5, own=0.0, seed=0):
    """Rows of one simulated system; `own` is the share it withholds by itself."""
    rng = np.random.default_rng(seed)
    right = rng.random(n) < accuracy
    confidence = 1 / (1 + np.exp(-rng.normal(gap * right, 1.0)))
    withheld = rng.random(n) < own
    return [
        {
            "id": place,
            "system": system,
            "target": "yes",
            "prediction": None if withheld[place] else "yes" if right[place] else "no",
            "confidence": float(confidence[place]),
            "part": "odd" if place % 2 else "even",
        }
        for place in range(n)
    ]


@pytest.fixture(scope="session")
def simulated():
    """A function that gives rows of one simulated system."""
    return answers


@pytest.fixture(scope="session")
def tables():
    return {
        name: answers(name, accuracy=0.6 + 0.05 * place, own=0.2 if name == "shy" else 0.0, seed=place)
        for place, name in enumerate(["base", "better", "shy"])
    }


@pytest.fixture(scope="session")
def evaluations(tables):
    rows = [row for part in tables.values() for row in part]
    return evaluate(responses(rows), replicates=60)


@pytest.fixture(scope="session")
def eight():
    rows = [row for place in range(8) for row in answers(f"system {place}", n=80, seed=place)]
    return evaluate(responses(rows), replicates=20)


@pytest.fixture(scope="session")
def comparison(tables):
    return compare(responses([*tables["base"], *tables["better"]]), replicates=60)


@pytest.fixture(scope="session")
def choice(tables):
    base = [row["prediction"] == "yes" for row in tables["base"]]
    sample = Sample(Rows.of([row["confidence"] for row in tables["base"]], base))
    return threshold_by_cost(sample, 0.3, name="base")
