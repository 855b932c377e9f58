"""`make test-hta` runs these tests in a separate environment, which has HTA; elsewhere they are skipped."""

from tracekit.errors import NeedsPackageError
from tracekit.hta import needed

try:
    needed()
except NeedsPackageError:
    collect_ignore_glob = ["test_*.py"]
