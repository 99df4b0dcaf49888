"""Systems of the project's own put to the test: tuned, and compared in the experiments of the papers."""
