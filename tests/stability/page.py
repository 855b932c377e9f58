"""What docs/stability.md takes from promised.json: the kinds of names, those of short lists, and what will go away."""

import re
from collections.abc import Mapping

from tests.stability.promise import Promise
from tests.stability.today import ROOT
from tracekit.base.deprecation import Deprecation

PAGE = ROOT / "docs" / "stability.md"
_LISTS = re.compile(r"(?<=<!-- promised -->\n).*?(?=<!-- /promised -->)", re.DOTALL)
_SHORT = 12  # names: so many are listed on the page
MEANINGS = {
    "python": "what `import tracekit` offers, and the objects that it returns: their methods and parameters",
    "plug-in": "what the examples for packages of your own import, with parameters",
    "entry point": "the groups in which packages register",
    "verb": "the verbs of the command line",
    "option": "their options and arguments, and the values of those that have a list of them",
    "exit code": "how a program ends",
    "schema": "the names of formats, whose number changes where a key goes or means something else",
    "key": "the keys of `report`, `check`, `lines` and `what-if` with `--format json`, and which are never left out",
    "column": "the columns of exported tables, with their types",
    "bucket": "the keys of buckets",
    "finding": "the ids of findings and verdicts",
    "law": "the ids of laws of a trace, in `health`",
}


def with_lists(page: str, promise: Promise, deprecations: Mapping[str, Deprecation]) -> str:
    """The page with a row for each kind of name, and one for each name that is deprecated."""
    lines = ["| kind | what is promised |", "|---|---|"]
    for kind, meaning in MEANINGS.items():
        names = promise.names[kind] if len(promise.names[kind]) <= _SHORT else []
        lines.append(
            f"| {kind} | {': '.join([meaning, *([', '.join(f'`{name}`' for name in names)] if names else [])])} |"
        )
    lines.append("")
    if deprecations:
        lines += ["These will go away:", "", "| name | deprecated since | gone in | instead |", "|---|---|---|---|"]
        lines += [f"| `{name}` | {each.since} | {each.ends} | {each.instead} |" for name, each in deprecations.items()]
    else:
        lines += ["Nothing is deprecated at present."]
    return _LISTS.sub(lambda _: "\n".join([*lines, ""]), page)
