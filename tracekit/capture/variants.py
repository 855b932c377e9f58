"""Which variants to run: parses their names into parameters and compile options, and `--param hidden=128` into a
value of the type of the recipe's default.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from tracekit.errors.asking import UnknownVariantError
from tracekit.errors.capturing import BadParameterError, UnknownParameterError
from tracekit.run import Requested

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
# What a variant may set besides the recipe's parameters; the type of each value says how text is converted.
_COMPILE_OPTIONS: dict[str, Any] = {
    "compile": True,
    "mode": "",
    "dynamic": True,
    "fullgraph": True,
    "backend": "",
    "options": {},
}
_BOOLS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class PlannedVariant(Struct, frozen=True):
    """One variant to run; `params` holds those that differ from the run's."""

    name: str
    requested: Requested
    params: dict[str, Any] = field(default_factory=dict)


def split_names(text: str) -> list[str]:
    """`eager,compiled:dynamic=true,hidden=8` → `eager` and `compiled:dynamic=true,hidden=8`."""
    names: list[str] = []
    for piece in filter(None, (piece.strip() for piece in text.split(","))):
        if names and ":" in names[-1] and ":" not in piece and "=" in piece:
            names[-1] += f",{piece}"
        else:
            names.append(piece)
    return names


def plan_variants(
    names: Iterable[str], params: Mapping[str, Any], declared: Mapping[str, Mapping[str, Any]], backend: str
) -> list[PlannedVariant]:
    """The variants of these names, or by default eager, compiled and those that the recipe declares.

    A name that is given again is the same code once more, under another name: what differs then is what cannot be told
    on this machine.
    """
    variant_names = split_names(",".join(names))
    if not variant_names:
        return [_planned(name, params, declared, backend) for name in dict.fromkeys(["eager", "compiled", *declared])]
    planned: list[PlannedVariant] = []
    for name in variant_names:
        times = sum(name == earlier for earlier in variant_names[: len(planned)])
        variant = _planned(name, params, declared, backend)
        if times:
            variant = replace(variant, name=f"{name} again" if times == 1 else f"{name} again {times}")
        planned.append(variant)
    return planned


def _planned(
    name: str, params: Mapping[str, Any], declared: Mapping[str, Mapping[str, Any]], backend: str
) -> PlannedVariant:
    base, _, suffix = name.partition(":")
    settings = {"compile": True, **_base(base, declared), **_read_suffix(suffix, params)}
    overrides = {key: value for key, value in settings.items() if key not in _COMPILE_OPTIONS}
    check_known(overrides, params)
    return PlannedVariant(name, _request(settings, backend), overrides)


def _base(name: str, declared: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    if name in declared:
        return declared[name]
    if name in ("eager", "compiled"):
        return {"compile": name == "compiled"}
    if name in MODES:
        return {"mode": name}
    raise UnknownVariantError(name, [*dict.fromkeys(["eager", "compiled", *declared, *MODES])])


def _read_suffix(suffix: str, params: Mapping[str, Any]) -> dict[str, Any]:
    pairs: dict[str, str] = {}
    for piece in filter(None, suffix.split(",")):
        name, equals, value = piece.partition("=")
        if not equals:
            raise BadParameterError(name, "", "a setting of the form NAME=VALUE")
        pairs[name] = value
    options = {key: parse(key, pairs.pop(key), _COMPILE_OPTIONS[key]) for key in [*pairs] if key in _COMPILE_OPTIONS}
    return {**options, **parse_all(pairs, params)}


def _request(settings: Mapping[str, Any], backend: str) -> Requested:
    if not settings["compile"]:
        return Requested(compile=False)
    mode = settings.get("mode")
    if mode is not None and mode not in MODES:
        raise BadParameterError("mode", mode, f"one of {', '.join(MODES)}")
    return Requested(
        compile=True,
        mode=mode,
        dynamic=settings.get("dynamic"),
        fullgraph=bool(settings.get("fullgraph", False)),
        backend=settings.get("backend", backend),
        options=dict(settings.get("options") or {}),
    )


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
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        if default is None:
            return None if text.lower() == "none" else text
        raise BadParameterError(name, text, "JSON such as [10, 5]") from None


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
