"""Long proofs, run by hand before a release: `make verify`.

`test_scripts.py` captures every script of `tests/scripts` and compares each variant with a plain run of the same
script: a Python process that imports nothing from tracekit, observed only through torch's own logs. To add a script:

1. Put it into `tests/scripts/`, written as its users write theirs. It prints where it runs and a line a step: with
   `steplog.StepLog`, or as lines of the same form. If it compiles only on request, it has a flag for that.
2. Give it a table in `tests/scripts/scripts.toml`; the head of that file says what the keys mean. The counts in it are
   those of the plain run: `python -m verify NAME` in `tests/` prints what they are.
3. `TRACEKIT_VERIFY=1 python -m pytest tests/verify -k NAME` compares it, and prints its row of the table.

Those marked `ci` are compared in `make test`, too: their compiled twin in one profiled pass, without the pace.
"""
