"""The pages of the gallery: for each case a short story by hand, the first screen of its report, and a picture.

A story (`stories/CASE.md`) holds no figure. It names figures of the report in braces, in the syntax of `str.format`,
and variants by their position: `{0.step}` is what a step of the first one takes, `{0.wall.dispatch}` its dispatch and
`{0.wall.dispatch:share}` that as a share of its step, `{1.findings.dispatch_bound.cost}` the cost of a finding of the
second, `{1.host.total}` what its host takes, `{1.says.kernels}` what the section on kernels says of it. `{report}` is
the first screen, `{picture}` the picture.
"""

import os
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from docs.gallery.traces import Gallery, Published
from tracekit.base.units import count, duration, percent
from tracekit.faces import Options
from tracekit.faces.markdown import escape
from tracekit.faces.shared.document import as_document
from tracekit.faces.shared.wording import UNIT
from tracekit.faces.text import draw
from tracekit.plots import plot
from tracekit.profile import open_subject
from tracekit.report import Report, report

STORIES = Path(__file__).with_name("stories")
WIDTH, LINE = 80, 120  # columns of a report, which fit on a page of the site, and characters of a line of prose
_LISTED = 2  # traces that a command names one by one
_GLUE = "\ue000"  # stands for a space between a number and its unit, which do not part
_FIRST_SCREEN = "What the host does"  # the section with which the rest of a report begins


class Time(NamedTuple):
    """A time that a story names: as it is, or with `:share` as a share of the whole that it is a part of."""

    ns: float
    whole_ns: float | None = None

    def __format__(self, spec: str) -> str:
        if spec == "share":
            return percent(self.ns / self.whole_ns if self.whole_ns else None)
        return duration(self.ns)


class Page(NamedTuple):
    """A page, and its picture as a PNG file; None where nothing is known that could be drawn."""

    name: str
    text: str
    picture: bytes | None

    @property
    def title(self) -> str:
        """What the page is called."""
        return self.text.partition("\n")[0].removeprefix("# ")

    @property
    def question(self) -> str:
        """The paragraph after the title."""
        return self.text.split("\n\n")[1].replace("\n", " ")


def page(name: str, paths: list[Path], published: list[Published], with_picture: bool = True) -> Page:
    """The page of a case, made from its traces."""
    case = report(open_subject(paths))
    picture = plot(case, "attribution").content("png") if with_picture and _is_known(case) else None
    story = (STORIES / f"{name}.md").read_text(encoding="utf-8")
    figures = [_figures(variant) for variant in _variants(as_document(case))]
    image = f"![Where the time of a step goes]({name}.png)" if _is_known(case) else ""
    text = story.format(*figures, report=_screen(case, paths), picture=image)
    return Page(name, f"{_wrapped(text).strip()}\n\n{_sources(paths, published)}", picture)


def index(pages: list[Page], gallery: Gallery) -> str:
    """The page that lists the others, and every trace."""
    cases = [f"| [{made.title}]({made.name}.md) | {made.question} |" for made in pages]
    head = (STORIES / "index.md").read_text(encoding="utf-8")
    traces = [
        f"| [{name}]({trace.address}) | {count(trace.bytes)} | {trace.licence or 'none is stated'} | `{trace.sha256}` |"
        for name, trace in gallery.traces.items()
    ]
    return _wrapped(head).replace("{cases}", "\n".join(cases)).replace("{traces}", "\n".join(traces))


def _is_known(case: Report) -> bool:
    return any(section.id == "wall" for section in case.sections)


def _screen(case: Report, paths: list[Path]) -> str:
    with _width():
        lines = [line.rstrip() for line in draw(case, Options()).splitlines()]
    end = next((row for row, line in enumerate(lines) if line.startswith(_FIRST_SCREEN)), len(lines))
    names = [path.name for path in paths]
    if len(names) > _LISTED:
        names = ["".join(letters[0] for letters in takewhile(_is_one, zip(*names, strict=False))) + "*"]
    return "\n".join(
        ["```console", f"$ tracekit report {' '.join(names)}", *"\n".join(lines[:end]).strip().split("\n"), "…", "```"]
    )


def _is_one(letters: tuple[str, ...]) -> bool:
    return len({*letters}) == 1


@contextmanager
def _width() -> Iterator[None]:
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(WIDTH)
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def _variants(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What is told of each variant: its parts as they are shown, its findings and its sections."""
    for variant in document["variants"]:
        name = variant["name"]
        views = {
            block["name"]: part
            for section in document["sections"]
            for block in section["blocks"]
            if block["kind"] == "breakdown"
            for part in block["variants"]
            if part["name"] == name
        }
        yield {
            "views": views,
            "findings": [finding for finding in document["findings"] if finding["variant"] == name],
            "sections": [section for section in document["sections"] if section["variant"] == name],
        }


def _figures(variant: dict[str, Any]) -> SimpleNamespace:
    """What a story may name of a variant."""
    views = variant["views"]
    step_ns = views["wall"]["total_ns"] if "wall" in views else None
    parts = {
        name: SimpleNamespace(
            total=Time(view["total_ns"]), **{key: Time(ns, view["total_ns"]) for key, ns in view["parts"].items()}
        )
        for name, view in views.items()
    }
    findings = {
        finding["id"]: SimpleNamespace(
            cost=Time(finding["cost_ns"] or 0, step_ns),
            **{key: escape(finding[key]) for key in ("headline", "why", "do")},
        )
        for finding in reversed(variant["findings"])  # of several of a kind, the costliest
    }
    sentences = {
        section["id"]: escape(" ".join(block["lines"]))
        for section in variant["sections"]
        for block in section["blocks"][:1]
        if block["kind"] == "sentences"
    }
    return SimpleNamespace(
        step=Time(step_ns) if step_ns is not None else None,
        findings=SimpleNamespace(**findings),
        says=SimpleNamespace(**sentences),
        **parts,
    )


def _wrapped(text: str) -> str:
    """The lines of paragraphs, quotes and lists broken where a person would: figures are not as long as their names."""
    lines, fenced = [], False
    for line in text.split("\n"):
        fenced ^= line.startswith("```")
        if fenced or len(line) <= LINE or line.startswith(("|", "!")):
            lines.append(line)
        else:
            indent = line[:2] if line.startswith("> ") else "  " if line.startswith("- ") else ""
            glued = UNIT.sub(_GLUE, line)
            lines.append(
                textwrap.fill(glued, LINE, subsequent_indent=indent, break_long_words=False).replace(_GLUE, " ")
            )
    return "\n".join(lines)


def _sources(paths: list[Path], published: list[Published]) -> str:
    """Where the traces of a case come from."""
    rows = [
        f"| `{path.name}` | [{trace.file}]({trace.address}) | {trace.licence or 'none is stated'} |"
        for path, trace in zip(paths, published, strict=True)
    ]
    return "\n".join(["| trace | published as | licence |", "|---|---|---|", *rows, ""])
