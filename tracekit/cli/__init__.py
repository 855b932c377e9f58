"""The verbs, one per file, and what they share: inputs, output, streams. `program` puts them together.

A verb is a small class: its docstring is its help, `arguments` declares its options, `run` returns the exit code. One
that reads traces says so with `reads_traces = True`, and one that needs pandas with `needs_pandas = True`: `start_up`
says what that is for.
"""

from tracekit.cli.program import entry, main

__all__ = ["entry", "main"]
