"""What `scan.c` offers."""

from typing import Any, TypeAlias

# events, rows, negative durations, integers that occur, special events, new categories, names and tracks
_Found: TypeAlias = tuple[int, int, int, bytes, bytes, list[bytes], list[bytes], list[bytes]]

class Scanner:
    """Scans pieces of JSON, and numbers the categories, names and tracks in them."""

    def scan(self, chunk: bytes | memoryview, start: int, end: int, columns: list[Any], row: int) -> _Found | None: ...
    def keep(self) -> None: ...
    def forget(self) -> None: ...
