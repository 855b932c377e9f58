"""`make test-hta` runs these tests in a separate environment, which has HTA; elsewhere those that call it are
skipped."""

from tracekit.errors.asking import NeedsPackageError
from tracekit.hta import needed

try:
    needed()
except NeedsPackageError:
    collect_ignore = ["test_not_read_again.py", "test_same_as_hta.py", "test_sections.py"]
