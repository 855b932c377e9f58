"""Parses `--param hidden=128`: the text is converted to the type of the recipe's default."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from tracekit.errors import BadParameterError, UnknownParameterError

_BOOLS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def parse_all(arguments: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Each value, converted to its parameter's type; a value that is not text is used as it is."""
    check_known(arguments, declared)
    return {
        name: parse(name, value, declared[name]) if isinstance(value, str) else value
        for name, value in arguments.items()
    }


def check_known(names: Iterable[str], declared: Mapping[str, Any]) -> None:
    """Refuse parameters that the recipe does not declare."""
    for name in names:
        if name not in declared:
            raise UnknownParameterError(name, sorted(declared))


def parse(name: str, text: str, default: Any) -> Any:
    """`text`, converted to the type of `default`; `none` is None if the default is."""
    if isinstance(default, bool):
        return _parse_bool(name, text)
    if isinstance(default, int):
        return _convert(name, text, int, "a whole number")
    if isinstance(default, float):
        return _convert(name, text, float, "a number")
    if isinstance(default, str):
        return text
    return _parse_json(name, text, default)


def _parse_bool(name: str, text: str) -> bool | None:
    if name == "dynamic" and text.lower() in ("auto", "none"):
        return None
    if text.lower() not in _BOOLS:
        raise BadParameterError(name, text, "true or false")
    return _BOOLS[text.lower()]


def _convert(name: str, text: str, kind: type[int] | type[float], expected: str) -> int | float:
    try:
        return kind(text)
    except ValueError:
        raise BadParameterError(name, text, expected) from None


def _parse_json(name: str, text: str, default: Any) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        if default is None:
            return None if text.lower() == "none" else text
        raise BadParameterError(name, text, "JSON such as [10, 5]") from None
