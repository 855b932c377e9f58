"""The pages that explain an id of a report, be it a finding, a law or a bucket: what a page is made of, and its text in
a terminal and in Markdown. Each is written beside the code that it explains.
"""

import re
import textwrap
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

Kind = Literal["finding", "law", "bucket"]
# What a cure changes apart from time; of several things, the gravest, which is the last here. Rounding differs where
# sums are added up in another order, for example.
Safety = Literal["changes nothing", "memory", "rounding", "results"]
_CHANGES: Mapping[Safety, str] = {
    "changes nothing": "nothing but time",
    "memory": "memory",
    "rounding": "rounding, such as the order of floating-point sums; losses agree but for that",
    "results": "results; compare the losses",
}
_KINDS: Mapping[Kind, str] = {"finding": "A finding.", "law": "A law of a trace.", "bucket": "A bucket of time."}
KIND_TITLES: Mapping[Kind, str] = {"finding": "Findings", "law": "Laws of a trace", "bucket": "Buckets"}
_WIDTH = 100  # columns: longer lines are hard to read
_ID, _ADDRESS = re.compile(r"`(\w+)`"), re.compile(r"https?://\S+")


class Cure(Struct, frozen=True):
    """What to change, as an imperative, and what else that changes."""

    text: str
    safety: Safety


class Part(Struct, frozen=True):
    """A heading and what stands below it: a paragraph or a point for each text, or lines that are kept as they are."""

    heading: str
    texts: tuple[str, ...]
    layout: Literal["paragraphs", "points", "lines"] = "paragraphs"


class Page(Struct, frozen=True):
    """What an id means. Code, and ids of other pages, stand between backticks."""

    id: str
    kind: Kind
    title: str
    parts: tuple[Part, ...]


def flowed(text: str) -> str:
    """A text that was written over several lines, as one line."""
    return " ".join(text.split())


def paragraph(heading: str, text: str) -> Part:
    """A part of one paragraph."""
    return Part(heading, (flowed(text),))


def cures(entries: tuple[Cure, ...]) -> Part:
    """What to change, each cure with its safety."""
    return Part(
        "What to change", tuple(f"{flowed(cure.text)} Changes: {_CHANGES[cure.safety]}." for cure in entries), "points"
    )


def as_text(page: Page) -> str:
    """The page for a terminal, in lines of at most 100 columns unless they are kept as they are or are addresses."""
    lines = [*_wrapped(f"{page.id} – {page.title}"), _KINDS[page.kind], ""]
    for part in page.parts:
        lines += _wrapped(part.heading)
        for text in part.texts:
            if part.layout == "lines":
                lines.append(f"  {text}".rstrip())
            else:
                lines += _wrapped(text, *(("  - ", "    ") if part.layout == "points" else ("  ", "  ")))
        lines.append("")
    return "\n".join(lines)


def _wrapped(text: str, first: str = "", rest: str = "") -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


def as_markdown(page: Page, links: Mapping[str, str]) -> str:
    """The page in Markdown; ids between backticks lead to the pages that `links` has of them, except to itself."""

    def linked(match: re.Match[str]) -> str:
        target = links.get(match[1]) if match[1] != page.id else None
        return f"[{match[0]}]({target})" if target else match[0]

    lines = [f"# `{page.id}`: {page.title}", "", f"*{_KINDS[page.kind]}*", ""]
    for part in page.parts:
        lines += [f"## {part.heading}", ""]
        if part.layout == "lines":
            lines += ["```text", *part.texts, "```", ""]
        else:
            texts = [_ADDRESS.sub(r"<\g<0>>", _ID.sub(linked, text)) for text in part.texts]
            points = [f"- {text}" for text in texts]
            lines += ["\n".join(points) if part.layout == "points" else "\n\n".join(texts), ""]
    return "\n".join(lines).rstrip() + "\n"
