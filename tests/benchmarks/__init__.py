"""Benchmarks: how fast tracekit is compared with other tools. `python -m tests.benchmarks`."""
