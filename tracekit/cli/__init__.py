"""The verbs, one per file, and what they share: inputs, output, streams. `program` puts them together.

A verb is a small class: its docstring is its help, `arguments` declares its options, `run` returns the exit code. One
that needs pandas says so with `needs_pandas = True`: importing it is a third of a report's start-up.
"""

from tracekit.cli.program import entry, main

__all__ = ["entry", "main"]
