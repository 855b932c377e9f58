"""The gallery of the documentation: its pages are what their traces say today, and its stories hold no figures."""

import gzip
import hashlib
import io
import re
import tarfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import pytest
from real import trace_path

from docs.gallery.__main__ import HERE, main
from docs.gallery.pages import STORIES, Page, index, page
from docs.gallery.traces import GalleryError, Published, fetch, gallery, stored

GALLERY = gallery()
PAGE = re.compile(r"^      - gallery/([\w-]+)\.md$", re.MULTILINE)
FIGURE = re.compile(r"\b\d[\d.,]* ?(?:%|×|[nµm]?s\b|[KMGT]i?B)|\b\d+[.,]\d+")
TRACE = b'{"traceEvents": []}'
DAMAGED = gzip.compress(TRACE)[:12] + bytes(range(200, 250))


@pytest.mark.traces
@pytest.mark.parametrize("case", GALLERY.cases)
def test_a_page_is_what_its_traces_say_today(case: str) -> None:
    names = GALLERY.cases[case]
    traces = [GALLERY.traces[name] for name in names]
    paths = [stored(name, trace, trace_path(name).parent) for name, trace in zip(names, traces, strict=True)]
    assert (HERE / f"{case}.md").read_text() == page(case, paths, traces, with_picture=False).text


def test_the_index_lists_every_case_and_every_trace() -> None:
    pages = [Page(case, (HERE / f"{case}.md").read_text(), None) for case in GALLERY.cases]
    assert (HERE / "index.md").read_text() == index(pages, GALLERY)


def test_every_case_has_a_story_a_page_and_an_entry_in_the_menu() -> None:
    menu = PAGE.findall((HERE.parents[1] / "mkdocs.yml").read_text())
    assert menu == ["index", *GALLERY.cases]
    assert sorted(path.stem for path in STORIES.glob("*.md")) == sorted(menu)
    assert sorted(path.stem for path in HERE.glob("*.md")) == sorted(menu)


def test_every_trace_is_of_a_case() -> None:
    assert sorted(GALLERY.traces) == sorted(name for names in GALLERY.cases.values() for name in names)


@pytest.mark.parametrize("story", sorted(STORIES.glob("*.md")), ids=lambda path: path.stem)
def test_a_story_takes_its_figures_from_the_report(story: Path) -> None:
    assert FIGURE.findall(re.sub(r"\{.*?\}|`.*?`", "", story.read_text())) == []


@pytest.mark.parametrize("case", GALLERY.cases)
def test_a_page_has_its_picture(case: str) -> None:
    shown = re.findall(r"!\[.*?\]\((.*?)\)", (HERE / f"{case}.md").read_text())
    assert shown == [path.name for path in HERE.glob(f"{case}.png")]
    assert all(len((HERE / name).read_bytes()) < 100_000 for name in shown)


def archived(content: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, held in (("other.json", content[::-1]), ("folder/trace.json", content)):
            member = tarfile.TarInfo(name)
            member.size = len(held)
            archive.addfile(member, io.BytesIO(held))
    return file.getvalue()


class Quiet(SimpleHTTPRequestHandler):
    """A server that does not report what it is asked."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Where the files of `tmp_path / "published"` are published."""
    (tmp_path / "published").mkdir()
    server = HTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path / "published"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def published(address: str) -> Published:
    return Published(f"{address}/trace", "MIT", len(TRACE), hashlib.sha256(TRACE).hexdigest())


@pytest.mark.parametrize("packed", [bytes, gzip.compress, archived], ids=["plain", "gzip", "archive"])
def test_a_trace_is_fetched_as_it_is_published(packed: Callable[[bytes], bytes], address: str, tmp_path: Path) -> None:
    (tmp_path / "published" / "trace").write_bytes(packed(TRACE))
    trace = published(address)
    path = fetch("mine", trace, tmp_path)
    assert path == stored("mine", trace, tmp_path)
    assert gzip.decompress(path.read_bytes()) == TRACE


@pytest.mark.parametrize(
    "content", [b"version https://git-lfs", gzip.compress(TRACE + b" "), b"\x1f\x8b damaged", DAMAGED]
)
def test_another_file_is_not_taken_for_the_trace(content: bytes, address: str, tmp_path: Path) -> None:
    (tmp_path / "published" / "trace").write_bytes(content)
    with pytest.raises(GalleryError, match="another file than the gallery is about"):
        fetch("mine", published(address), tmp_path)
    assert not (tmp_path / "mine.json.gz").exists()


def test_an_address_that_does_not_answer_is_named(address: str, tmp_path: Path) -> None:
    with pytest.raises(GalleryError, match=rf"^{address}/trace cannot be fetched: .*404"):
        fetch("mine", published(address), tmp_path)


def test_a_folder_that_cannot_be_written_to_is_named(address: str, tmp_path: Path) -> None:
    (tmp_path / "published" / "trace").write_bytes(TRACE)
    (tmp_path / "file").touch()
    with pytest.raises(GalleryError, match=r"mine\.json\.gz cannot be written .*Name another folder"):
        fetch("mine", published(address), tmp_path / "file")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "does not exist"),
        (b"no gzip", "cannot be read"),
        (DAMAGED, "cannot be read"),
        (gzip.compress(b"{}"), "is not the trace"),
    ],
)
def test_a_file_that_is_not_the_trace_is_refused(content: bytes | None, says: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "mine.json.gz").write_bytes(content)
    with pytest.raises(GalleryError, match=says):
        stored("mine", published("http://nowhere"), tmp_path)


def test_without_traces_one_sentence_says_how_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["gallery", "--traces", str(tmp_path)])
    assert main() == 1
    said = capsys.readouterr().err
    assert said.startswith("gallery: ")
    assert "make gallery FETCH=1" in said
    assert len(said.splitlines()) == 1
