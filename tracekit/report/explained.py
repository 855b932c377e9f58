"""Every page there is: of the kinds of finding, the laws of a trace and the buckets, and what a name of one means."""

from collections.abc import Collection
from functools import lru_cache
from typing import get_args

from tracekit.base.pages import Kind, Page
from tracekit.base.registry import import_plug_ins
from tracekit.engine.buckets import BUCKETS
from tracekit.errors.asking import UnknownIdError
from tracekit.findings import import_rules
from tracekit.findings.choice import Choice
from tracekit.findings.page import FINDING_PAGES


@lru_cache
def finding_ids() -> tuple[str, ...]:
    """The ids of all findings that have a page, those of other packages included, in alphabetical order."""
    import tracekit.findings.tried
    import tracekit.ranks.straggler  # noqa: F401 - it declares the page of its own finding

    import_rules()
    import_plug_ins("tracekit.findings")
    return tuple(sorted(FINDING_PAGES))


@lru_cache
def pages(kind: Kind) -> dict[str, Page]:
    """The pages of findings, laws or buckets, by their ids, in alphabetical order."""
    if kind == "finding":
        return {name: FINDING_PAGES[name].page for name in finding_ids()}
    if kind == "bucket":
        return {key: BUCKETS[key].page for key in sorted(BUCKETS)}
    from tracekit.profile.assembled import FOREIGN_LOG
    from tracekit.profile.opening import WINDOWS
    from tracekit.trace.facts import all_laws

    laws = {law.id: law.page for law in (*all_laws(), FOREIGN_LOG, WINDOWS)}
    return dict(sorted(laws.items()))


def all_pages() -> list[Page]:
    """The pages of findings, laws and buckets, in this order."""
    return [page for kind in get_args(Kind) for page in pages(kind).values()]


def pages_of(name: str) -> list[Page]:
    """The pages of that id; two where a finding and a bucket share it. Raises UnknownIdError."""
    found = [page for page in all_pages() if page.id == name]
    if not found:
        raise UnknownIdError(name, "finding, law or bucket", similar(name, sorted({page.id for page in all_pages()})))
    return found


def choice_of(select: Collection[str], ignore: Collection[str]) -> Choice:
    """Which findings are to be listed, by ids or the beginnings of ids. Raises UnknownIdError where no id begins so."""
    options = {"--select": select, "--ignore": ignore}
    words = " ".join(f"{option} {','.join(names)}" for option, names in options.items() if names)
    return Choice(_ids(select), _ids(ignore), words)


def _ids(names: Collection[str]) -> tuple[str, ...]:
    chosen: dict[str, None] = {}
    for name in names:
        fitting = [name] if name in finding_ids() else [known for known in finding_ids() if known.startswith(name)]
        if not fitting:
            raise UnknownIdError(name, "finding", similar(name, finding_ids()))
        chosen |= dict.fromkeys(fitting)
    return tuple(chosen)


def similar(name: str, known: Collection[str]) -> str:
    """The id that was probably meant; empty if none is similar."""
    from difflib import get_close_matches  # only where something is misspelt

    written = name.lower().replace("-", "_").replace(" ", "_")
    return next(iter(get_close_matches(written, [*known], n=1)), "")
