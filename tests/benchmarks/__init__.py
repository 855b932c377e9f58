"""How fast, beside what else there is. `python -m tests.benchmarks`."""
