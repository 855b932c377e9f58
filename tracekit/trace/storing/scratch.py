"""Arrays that may be too long for memory: a long one is stored in a file that no other process sees."""

import os
import tempfile
from collections.abc import Iterable, Sequence
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tracekit.base.intervals import Union
from tracekit.trace.storing import cache

LONG = 4 << 20  # bytes: a longer array goes to a file
_Number = TypeVar("_Number", bound=np.number)


def scratch_array(count: int, kind: DTypeLike) -> NDArray[Any]:
    """An array to be filled; if no file can be made, in memory."""
    size = count * np.dtype(kind).itemsize
    if size < LONG:
        return np.empty(count, kind)
    try:
        with _file() as file:
            if hasattr(os, "posix_fallocate"):  # else a disk without room for it would end the process
                os.posix_fallocate(file.fileno(), 0, size)
            return np.memmap(file, kind, "w+", shape=(count,))
    except (OSError, ValueError):
        return np.empty(count, kind)


def put_aside(column: NDArray[_Number]) -> NDArray[_Number]:
    """The same column, in a file where it is long."""
    if column.nbytes < LONG:
        return column
    copy = scratch_array(len(column), column.dtype)
    copy[:] = column
    return copy


def union_put_aside(union: Union) -> Union:
    """The same intervals, in files where they are many."""
    return Union(put_aside(union.starts), put_aside(union.ends))


def gathered(parts: Iterable[Sequence[NDArray[Any]]], kinds: Sequence[DTypeLike]) -> list[NDArray[Any]]:
    """Collects columns that come some rows at a time: one array for each of `kinds`."""
    columns = [_Column(np.dtype(kind)) for kind in kinds]
    for part in parts:
        for column, values in zip(columns, part, strict=True):
            column.append(values)
    return [column.whole() for column in columns]


class _Column:
    """What was appended: in memory until it is long, or always if no file can be made."""

    def __init__(self, kind: np.dtype[Any]) -> None:
        self._kind = kind
        self._parts: list[NDArray[Any]] = []
        self._size = 0  # bytes of the parts
        self._written = 0  # values in the file
        self._file: IO[bytes] | None = None

    def append(self, values: NDArray[Any]) -> None:
        self._parts.append(values.astype(self._kind, copy=False))
        self._size += self._parts[-1].nbytes
        if self._size >= LONG:
            self._flush()

    def whole(self) -> NDArray[Any]:
        if self._file is not None:
            self._flush()
        if self._file is None or self._parts:  # the disk became full: the rest is in memory
            before = [self._mapped()] if self._written else []
            return np.concatenate([*before, *self._parts]) if self._parts or before else np.zeros(0, self._kind)
        return self._mapped()

    def _flush(self) -> None:
        try:
            if self._file is None:
                self._file = _file()
            self._file.seek(self._written * self._kind.itemsize)
            for part in self._parts:
                self._file.write(np.ascontiguousarray(part).data)
            self._file.flush()
        except OSError:
            self._size = -(1 << 62)  # not tried again
            return
        self._written += sum(map(len, self._parts))
        self._parts, self._size = [], 0

    def _mapped(self) -> NDArray[Any]:
        assert self._file is not None
        with self._file as file:
            return np.memmap(file, self._kind, "r+", shape=(self._written,))


def _file() -> IO[bytes]:
    """A file without a name, which is deleted with its last mapping."""
    folder = cache.home() / "work"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return tempfile.TemporaryFile(dir=folder)
