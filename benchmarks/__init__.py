"""Speed and memory against peers (`python -m benchmarks`), and coverage (`python -m benchmarks.coverage`)."""
