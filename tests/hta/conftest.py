"""HTA is installed in an environment of its own: `make test-hta`. Elsewhere these tests are skipped."""

from tracekit.errors import NeedsPackageError
from tracekit.hta import needed

try:
    needed()
except NeedsPackageError:
    collect_ignore_glob = ["test_*.py"]
