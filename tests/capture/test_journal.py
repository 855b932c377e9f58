"""The journal of what a program does to files: every entry is read back as it was written, and nothing else is."""

import os
from typing import get_args

from tracekit.capture import journal
from tracekit.capture.undo import undo

ODD = os.fsdecode(b"/data/\xff.pt")  # a name that is not UTF-8
ENTRIES = [
    journal.Made(ODD, True),
    journal.MadeFolder("/data", True),
    journal.Read(ODD, True),
    journal.Changed(ODD, False, "1-1", (1 << 60, (1 << 60) + 1)),
    journal.ChangedLink("/data/latest", False, ODD),
    journal.Renamed(ODD, False, "/data/best.pt"),
    journal.RemovedFolder("/data/old", False),
]


def test_every_entry_is_read_back(tmp_path):
    assert {type(each) for each in ENTRIES} == {*get_args(journal.Entry)}
    (tmp_path / "entries").write_bytes(b"".join(map(journal.encoded, [journal.Unknown("('x',)"), *ENTRIES])))
    assert [*journal.read(tmp_path / "entries")] == ENTRIES
    assert [*journal.read(tmp_path / "none")] == []


def test_an_incomplete_entry_costs_no_other(tmp_path):
    first, *_, last = map(journal.encoded, ENTRIES)
    (tmp_path / "entries").write_bytes(first + b'{"op": "melted", "path": "/x"}\n' + last + last[:-9])
    assert [*journal.read(tmp_path / "entries")] == [ENTRIES[0], ENTRIES[-1]]


def test_files_links_and_folders_are_restored(tmp_path):
    here, scratch = tmp_path / "here", tmp_path / "scratch"
    here.mkdir()
    (scratch / journal.BACKUPS).mkdir(parents=True)
    (scratch / journal.BACKUPS / "1-1").write_text("before")
    (here / os.fsdecode(b"\xff.pt")).write_text("after")
    (here / "moved").write_text("moved")
    (here / "new").write_text("new")
    (here / "link").symlink_to("elsewhere")
    entries = [
        journal.Changed(str(here / os.fsdecode(b"\xff.pt")), False, "1-1", (5, 7)),
        journal.Made(str(here / "new"), False),
        journal.ChangedLink(str(here / "link"), False, "target"),
        journal.Renamed(str(here / "name"), False, str(here / "moved")),
        journal.RemovedFolder(str(here / "old"), False),
    ]
    (scratch / journal.JOURNAL).write_bytes(b"".join(map(journal.encoded, entries)))
    assert undo(scratch).failed == {}
    assert sorted(each.name for each in here.iterdir()) == ["link", "name", "old", os.fsdecode(b"\xff.pt")]
    assert (here / os.fsdecode(b"\xff.pt")).read_text() == "before"
    assert (here / os.fsdecode(b"\xff.pt")).stat().st_mtime_ns == 7
    assert os.readlink(here / "link") == "target"
    assert not (scratch / journal.JOURNAL).exists()
