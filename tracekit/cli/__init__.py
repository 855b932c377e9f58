"""The verbs, one per file, and what they share: inputs, output, streams. `program` puts them together.

A verb is a small class (`arguments.Verb`): its docstring is its help, `arguments` declares its options, `run` returns
the exit code. What `program` does for it beforehand, it asks for by flags, which `start_up` explains.
"""

from tracekit.cli.program import entry, main, script

__all__ = ["entry", "main", "script"]
