"""`python -m tracekit`."""

import sys

from tracekit.cli import entry

sys.exit(entry())
