"""What is promised, and what has become of it: promised.json, held against today's names and the deprecations."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from tests.stability.today import ROOT
from tracekit.base.deprecation import Deprecation

PATH = Path(__file__).with_name("promised.json")
FROM = "1.0"  # the first version whose names are promised: until then, names may go


class Promise(Struct):
    """The names that are promised, by kind, and since which version those that will go away are deprecated."""

    names: dict[str, list[str]]
    deprecated: dict[str, str] = {}  # "option: report --old": "1.1"


def promised() -> Promise:
    """What promised.json holds."""
    return msgspec.json.decode(PATH.read_bytes(), type=Promise)


def current_version() -> str:
    """The version of this checkout."""
    version: str = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    return version


def listed(names: Mapping[str, list[str]]) -> set[str]:
    """Names with their kinds, as deprecations have them."""
    return {f"{kind}: {name}" for kind, of_kind in names.items() for name in of_kind}


def has_come(wanted: str, version: str) -> bool:
    """Whether a version, such as 1.3.0, is that one, such as 1.3, or later."""
    return _numbers(version) >= _numbers(wanted)


def broken(
    promise: Promise, today: Mapping[str, list[str]], deprecations: Mapping[str, Deprecation], version: str
) -> Iterator[str]:
    """A sentence for each promise that is broken, and for each deprecation that is wrong."""
    kept, there = listed(promise.names), listed(today)
    for name in sorted(kept - there):
        since = promise.deprecated.get(name)
        if since is None:
            yield f"{name} is gone, without a deprecation: put it back, and deprecate it."
        elif not has_come(ends := Deprecation(since, "").ends, version):
            yield f"{name} is gone before version {ends}: put it back until then."
    for name, deprecation in deprecations.items():
        if name not in there:
            yield f"{name} is deprecated, and is not there: remove the deprecation, or correct its name."
        elif has_come(deprecation.ends, version):
            yield f"{name} was to go in version {deprecation.ends}, and is still there: remove it and its deprecation."
    for name in sorted(there):
        # A parameter that must be given breaks every call of a function that was promised without it.
        if name not in kept and (match := name.partition("("))[2] and match[0] in kept and not name.endswith("=)"):
            yield f"{name} must be given, and is new: give it a default."


def renewed(promise: Promise, today: Mapping[str, list[str]], deprecations: Mapping[str, Deprecation]) -> Promise:
    """The promise with the names that are new, without those that are gone, and with what is deprecated."""
    there = listed(today)
    since = promise.deprecated | {name: deprecation.since for name, deprecation in deprecations.items()}
    return Promise(dict(today), {name: version for name, version in since.items() if name in there})


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:2]))
