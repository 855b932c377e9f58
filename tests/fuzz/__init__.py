"""Fuzzing of all that tracekit reads, guided by coverage: `make fuzz`, for SECONDS=… and TARGETS=….

`targets` says what is read, `mutation` how trees of values are changed, `seeds` what all begins with, `verbs` what
counts as safe. None of these needs atheris, and `test_targets.py` runs each for a moment. `fuzzing` is one process
under atheris, `__main__` runs one after the other.
"""
