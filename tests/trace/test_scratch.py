"""Long columns go to files, short ones (and all, if the disk is full) to memory, with the same values."""

import os

import numpy as np
import pytest

from tracekit.base.intervals import Union
from tracekit.trace.storing import scratch
from tracekit.trace.storing.scratch import gathered, put_aside, union_put_aside

KINDS = (np.int64, np.int8)


def parts(count):
    for k in range(count):
        yield np.arange(k, dtype=np.int64), np.full(k, k % 100, np.int64)


@pytest.mark.parametrize("count", [0, 1, 2, 50])
@pytest.mark.parametrize("long", [1, 100, 1 << 20])
def test_columns_are_their_parts_one_after_the_other(monkeypatch, tmp_path, count, long):
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(scratch, "LONG", long)
    columns = gathered(parts(count), KINDS)
    for column, expected in zip(columns, zip(*parts(count), strict=True), strict=False):
        assert column.tolist() == np.concatenate(expected).tolist()
    assert [column.dtype for column in columns] == [*map(np.dtype, KINDS)]
    assert isinstance(columns[0], np.memmap) == (sum(range(count)) * 8 >= long)


def test_a_disk_that_becomes_full_loses_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(scratch, "LONG", 100)
    opened, files = scratch._file, []

    class Full:
        """A file that accepts a few bytes, and then no more."""

        def __init__(self):
            self.file, self.room = opened(), 3
            files.append(self)

        def write(self, data):
            self.room -= 1
            if not self.room:
                raise OSError(28, "No space left on device")
            return self.file.write(data)

        def __getattr__(self, name):
            return getattr(self.file, name)

        def __enter__(self):
            return self.file.__enter__()

        def __exit__(self, *error):
            return self.file.__exit__(*error)

    monkeypatch.setattr(scratch, "_file", Full)
    column = gathered(parts(50), KINDS)[0]
    assert files
    assert column.tolist() == [value for values, _ in parts(50) for value in values.tolist()]


def test_a_column_and_a_union_are_the_same_in_files(monkeypatch, tmp_path):
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(scratch, "LONG", 16)
    short, long = np.array([1], np.int64), np.arange(9, dtype=np.int32)
    assert put_aside(short) is short
    assert isinstance(aside := put_aside(long), np.memmap)
    assert aside.dtype == long.dtype
    assert aside.tolist() == long.tolist()
    union = Union(np.arange(0, 18, 2), np.arange(1, 19, 2))
    aside_union = union_put_aside(union)
    assert isinstance(aside_union.starts, np.memmap)
    assert [aside_union.starts.tolist(), aside_union.ends.tolist()] == [union.starts.tolist(), union.ends.tolist()]


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="room on the disk cannot be asked for here")
def test_a_disk_without_room_keeps_a_column_in_memory(monkeypatch, tmp_path):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(scratch, "LONG", 16)
    monkeypatch.setattr(os, "posix_fallocate", full)
    assert not isinstance(kept := put_aside(np.arange(9)), np.memmap)
    assert kept.tolist() == [*range(9)]


def test_without_a_place_for_files(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(scratch, "LONG", 1)
    assert len(gathered(parts(9), KINDS)[0]) == sum(range(9))
