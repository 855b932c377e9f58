"""What the pages take from elsewhere as they are built: whole files from the top, the help of every verb and key."""

import argparse
import os
import re
from pathlib import Path
from typing import Any

from tracekit.cli.program import VERBS
from tracekit.tui.keys import KEYS

HERE = Path(__file__).parent
ROOT = HERE.parent
# Where links of files at the top lead on the site; others become text.
_PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "extend.md", "recipes/README.md": "recipes.md"}


def on_page_markdown(markdown: str, page: Any = None, **_: object) -> str:
    """The page with what its comments ask for."""
    folder = (HERE / page.file.src_uri).parent if page is not None else HERE
    markdown = re.sub(r"<!-- file: (.*?) -->", lambda match: whole(match[1]), markdown)
    return relinked(markdown.replace("<!-- verbs -->", verbs()).replace("<!-- keys -->", keys()), folder)


def whole(name: str) -> str:
    """A file without its title, which the page has."""
    return (ROOT / name).read_text(encoding="utf-8").partition("\n")[2]


def verbs() -> str:
    """The help of every verb, as the terminal shows it."""
    os.environ["COLUMNS"] = "100"
    pages = []
    for verb in VERBS:
        parser = argparse.ArgumentParser(prog=f"tracekit {verb.name}", description=verb.__doc__)
        verb.arguments(parser)
        pages.append(f"## tracekit {verb.name}\n\n```text\n{parser.format_help()}```\n")
    return "\n".join(pages)


def keys() -> str:
    """A row for each key of the terminal UI, with what its tooltip says."""
    rows = [f"| `{key.key_display or key.key}` | {key.tooltip} |" for key in KEYS if key.tooltip]
    return "\n".join(["| key | what it does |", "|---|---|", *rows])


def relinked(text: str, folder: Path) -> str:
    """Links of files at the top, and to them, lead to pages of the site; where there is no such page, they are text.
    Those between pages of one folder below stay as they are."""

    def link(match: re.Match[str]) -> str:
        if folder != HERE and (folder / match[2].partition("#")[0]).resolve().is_relative_to(HERE):
            return match[0]
        target, hash_, section = match[2].removeprefix("../").removeprefix("docs/").partition("#")
        target = _PAGES.get(target, target)
        if "://" in target or not target or (HERE / target).exists():
            return f"{match[1]}({target}{hash_}{section})"
        return match[1].strip("[]")

    return re.sub(r"(\[[^\]\n]*\])\(([^)\s]*)\)", link, text)
