"""A file of rings: records of fixed size, mapped into memory, that can be read at any moment, also after a kill.

After its kind and its facts, the file holds for each ring how many entries were ever written, and then the rings. An
entry is written before the count that makes it part of its ring. What a process killed with SIGKILL has written so far
is therefore whole, but for the oldest entry of a ring that has come round, which may be half overwritten: it is not
read.
"""

import mmap
import os
import struct
from collections.abc import Sequence
from contextlib import suppress
from errno import EEXIST
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

KIND_BYTES = 24
_COUNT = struct.Struct("<Q")
_POPULATE_WRITE = 23  # MADV_POPULATE_WRITE, since Linux 5.14
_READY_ENTRIES = 512  # prepared at a time; of more, the system would have written some to the disk meanwhile

Entry = TypeVar("Entry", bound=tuple[int, ...])


class Ring(Generic[Entry]):
    """Entries of one kind at a place in a file: named tuples of integers."""

    def __init__(self, memory: mmap.mmap, count_at: int, at: int, capacity: int, entry: Any) -> None:
        self._memory, self._count_at, self._at, self._capacity = memory, count_at, at, capacity
        self._entry = entry
        self._ready = 0  # entries that the file is prepared for
        self._packed = struct.Struct(f"<{len(entry._fields)}q")

    def append(self, entry: Sequence[int]) -> None:
        """Write an entry over the oldest one, then count it."""
        memory, packed, count_at = self._memory, self._packed, self._count_at
        (count,) = _COUNT.unpack_from(memory, count_at)
        packed.pack_into(memory, self._at + count % self._capacity * packed.size, *entry)
        _COUNT.pack_into(memory, count_at, count + 1)

    def entry(self, index: int) -> Entry:
        """The entry before which `index` ever were written; it may not have been overwritten."""
        read: Entry = self._entry._make(
            self._packed.unpack_from(self._memory, self._at + index % self._capacity * self._packed.size)
        )
        return read

    def amend(self, index: int, entry: Sequence[int]) -> None:
        """Write an entry over the one before which `index` ever were written."""
        packed = self._packed
        packed.pack_into(self._memory, self._at + index % self._capacity * packed.size, *entry)

    def columns(self, first: int, end: int, fields: Sequence[int]) -> list[list[int]]:
        """These fields of the entries before which `first` to `end` ever were written, which is faster by far; none of
        them may have been overwritten. Only where numbers of the processor begin with their lowest byte."""
        width, capacity = len(self._entry._fields), self._capacity
        columns: list[list[int]] = [[] for _ in fields]
        with memoryview(self._memory) as file, file[self._at : self._at + capacity * self._packed.size] as ring:
            numbers = ring.cast("q")
            while first < end:
                slot = first % capacity
                entries = min(end - first, capacity - slot)
                for k, field in enumerate(fields):
                    columns[k] += numbers[slot * width + field : (slot + entries) * width : width].tolist()
                first += entries
            numbers.release()
        return columns

    def make_ready(self, entries: int) -> None:
        """Have the system prepare the file for so many entries, and some more, at once: the first write to each page of
        a mapped file takes tens of µs otherwise."""
        count, size = self.count, self._packed.size
        if self._ready < count + entries or self._ready > count + _READY_ENTRIES:
            at = self._at + count % self._capacity * size
            page = at - at % mmap.PAGESIZE
            end = min(at + _READY_ENTRIES * size, self._at + self._capacity * size)
            with suppress(AttributeError, OSError, ValueError):  # older systems cannot
                self._memory.madvise(_POPULATE_WRITE, page, end - page)
            self._ready = count + min(_READY_ENTRIES, self._capacity - count % self._capacity)

    @property
    def place(self) -> tuple[mmap.mmap, int, int, int]:
        """For who writes it without our help: the file, where in it the count and the entries are, and how many fit."""
        return self._memory, self._count_at, self._at, self._capacity

    @property
    def count(self) -> int:
        """How many entries were ever written."""
        count: int = _COUNT.unpack_from(self._memory, self._count_at)[0]
        return count

    def entries(self, since: int = 0) -> list[Entry]:
        """Those that are left, the oldest first; only those that were written after the first `since`."""
        count = self.count
        first = max(since, 0 if count < self._capacity else count - self._capacity + 1)
        read = (
            self._packed.unpack_from(self._memory, self._at + index % self._capacity * self._packed.size)
            for index in range(first, count)
        )
        return [self._entry._make(values) for values in read]


class Layout(NamedTuple):
    """What a file of rings consists of: `kind`, as in `tracekit.watch/1`, the bytes of its facts, for each ring the
    named tuple of its entries and how many it holds, and how many bytes follow the rings, for whatever else it has."""

    kind: str
    facts_bytes: int
    rings: tuple[tuple[Any, int], ...]
    rest_bytes: int = 0

    @property
    def counts_at(self) -> int:
        """Where the counts of the rings begin, of eight bytes each."""
        return KIND_BYTES + self.facts_bytes

    @property
    def rings_at(self) -> int:
        """Where the first ring begins."""
        return self.counts_at + 8 * len(self.rings)

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.rest_at + self.rest_bytes

    @property
    def rest_at(self) -> int:
        """Where what follows the rings begins."""
        return self.rings_at + sum(8 * len(entry._fields) * capacity for entry, capacity in self.rings)

    def create(self, path: Path, facts: bytes) -> mmap.mmap:
        """Make the file. Raises OSError, also if there is such a file already.

        All of its room on the disk is taken at once: where none was left later, writing to the mapped file would end
        the process.
        """
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            with open(part, "xb+") as file:
                file.write(self.beginning + facts.ljust(self.facts_bytes))
                file.flush()
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, self.size)
                else:
                    file.write(bytes(self.size - file.tell()))
                    file.flush()
                memory = mmap.mmap(file.fileno(), self.size)
            try:
                os.link(part, path)  # unlike a rename, it never replaces
            except FileExistsError:
                raise
            except OSError:  # a file system without hard links
                if path.exists():
                    raise FileExistsError(EEXIST, os.strerror(EEXIST), str(path)) from None
                part.rename(path)
        finally:
            part.unlink(missing_ok=True)
        return memory

    def open(self, path: Path) -> mmap.mmap:
        """Map a file to read it, also one that is being written. Raises OSError or ValueError, which says why."""
        with open(path, "rb") as file:
            if not os.fstat(file.fileno()).st_size:
                raise ValueError("it is empty")
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if memory[:KIND_BYTES] != self.beginning:
            raise ValueError(f"it does not begin with {self.kind}")
        if len(memory) != self.size:
            raise ValueError(f"it has {len(memory):,} bytes instead of {self.size:,}")
        return memory

    def facts(self, memory: mmap.mmap) -> bytes:
        """The facts of a mapped file, as they were given."""
        return memory[KIND_BYTES : self.counts_at].rstrip()

    def amend_facts(self, memory: mmap.mmap, facts: bytes) -> None:
        """Write other facts to a mapped file; there must be room for them."""
        memory[KIND_BYTES : self.counts_at] = facts.ljust(self.facts_bytes)

    def ring(self, memory: mmap.mmap, which: int) -> Ring[Any]:
        """One of the rings of a mapped file."""
        at = self.rings_at + sum(8 * len(entry._fields) * capacity for entry, capacity in self.rings[:which])
        entry, capacity = self.rings[which]
        return Ring(memory, self.counts_at + 8 * which, at, capacity, entry)

    @property
    def beginning(self) -> bytes:
        """The first bytes of each such file."""
        return self.kind.encode().ljust(KIND_BYTES, b"\n")
