"""What the pages take from elsewhere as they are built: sections of the README, whole files, the help of every verb."""

import argparse
import os
import re
from pathlib import Path

from tracekit.cli.program import VERBS

ROOT = Path(__file__).parents[1]
# Where links of files at the top lead on the site; others become text.
_PAGES = {"CONTRIBUTING.md": "extend.md", "recipes/": "recipes.md", "recipes/README.md": "recipes.md"}


def on_page_markdown(markdown: str, **_: object) -> str:
    """The page with what its comments ask for."""
    markdown = re.sub(r"<!-- readme: (.*?) -->", lambda match: section(match[1]), markdown)
    markdown = re.sub(r"<!-- file: (.*?) -->", lambda match: whole(match[1]), markdown)
    return markdown.replace("<!-- verbs -->", verbs())


def section(title: str) -> str:
    """A section of the README, with its heading. Raises KeyError where there is none."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    match = re.search(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if match is None:
        raise KeyError(f"README.md has no section {title!r}")
    return _relinked(match[0])


def whole(name: str) -> str:
    """A file without its title, which the page has."""
    return _relinked((ROOT / name).read_text(encoding="utf-8").partition("\n")[2])


def verbs() -> str:
    """The help of every verb, as the terminal shows it."""
    os.environ["COLUMNS"] = "100"
    pages = []
    for verb in VERBS:
        parser = argparse.ArgumentParser(prog=f"tracekit {verb.name}", description=verb.__doc__)
        verb.arguments(parser)
        pages.append(f"## tracekit {verb.name}\n\n```text\n{parser.format_help()}```\n")
    return "\n".join(pages)


def _relinked(text: str) -> str:
    """Links lead to pages of the site, or are no links any more."""

    def link(match: re.Match[str]) -> str:
        target, _, _ = match[2].partition("#")
        if target.startswith("docs/"):
            return f"{match[1]}({target.removeprefix('docs/')})"
        if target in _PAGES:
            return f"{match[1]}({_PAGES[target]})"
        return match[0] if "://" in target else match[1].strip("[]")

    return re.sub(r"(\[[^\]\n]*\])\(([^)\s]*)\)", link, text)
