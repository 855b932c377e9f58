"""Writes promised.json and the lists of docs/stability.md: `python -m tests.stability`.

New names are added. From version 1.0 on, nothing is written while a promise is broken.
"""

import sys

import msgspec

from tests.stability.page import PAGE, with_lists
from tests.stability.promise import FROM, PATH, Promise, broken, current_version, has_come, listed, promised, renewed
from tests.stability.today import today
from tracekit.base.deprecation import DEPRECATED


def main() -> int:
    """Say what is new, what is gone and what is broken; returns the exit code."""
    earlier, names, version = promised() if PATH.exists() else Promise({}), today(), current_version()
    sentences = [*broken(earlier, names, DEPRECATED, version)]
    print("\n".join(sentences), end="\n" if sentences else "")
    if sentences and has_come(FROM, version):
        return 1
    for sign, changed in (("+", listed(names) - listed(earlier.names)), ("-", listed(earlier.names) - listed(names))):
        print("".join(f"{sign} {name}\n" for name in sorted(changed)), end="")
    promise = renewed(earlier, names, DEPRECATED)
    PATH.write_bytes(msgspec.json.format(msgspec.json.encode(promise), indent=1) + b"\n")
    PAGE.write_text(with_lists(PAGE.read_text(encoding="utf-8"), promise, DEPRECATED), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
