"""Long proofs, run by hand before a release: `make verify`.

`test_scripts.py` captures every script of `tests/scripts` and compares each variant with a plain run of the same
script: a process of Python in which nothing of tracekit is imported, watched by torch's own logs only. To add a script:

1. Put it into `tests/scripts/`, written as its users write theirs. It prints where it runs and a line a step: that is
   `steplog.StepLog`, or lines of the same form. If it compiles only on request, it takes a flag for it.
2. Give it a table in `tests/scripts/scripts.toml`; the head of that file says what the keys mean. The counts in it are
   those of the plain run: `python -m verify NAME` in `tests/` prints what they are.
3. `TRACEKIT_VERIFY=1 python -m pytest tests/verify -k NAME` compares it, and prints its row of the table.

Those marked `ci` are compared in `make test`, too: their compiled twin in one profiled pass, without the pace.
"""
