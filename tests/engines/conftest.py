"""What the comparisons of engines share."""

import pytest

from engines.tables import IN_MEMORY, streaming


@pytest.fixture
def handed_over(engine, request):
    """Hands a table to an engine: on Spark in several parts."""
    if engine != "spark":
        with streaming(engine):
            yield IN_MEMORY[engine]
        return
    session = request.getfixturevalue("spark")
    yield lambda frame: session.createDataFrame(frame.to_arrow()).repartition(2)
