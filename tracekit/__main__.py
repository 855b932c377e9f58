"""`python -m tracekit`."""

from tracekit.cli import script

script()
