"""What `sweep.c` offers."""

from typing import Any

def sweep(threads: int, columns: list[Any]) -> None: ...
