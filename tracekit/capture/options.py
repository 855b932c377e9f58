"""What a capture is asked for: its options, and the variants that their names stand for, parsed into parameters and
compile options; `--param hidden=128` becomes a value of the type of the recipe's default.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from tracekit.capture import messages
from tracekit.errors.asking import UnknownVariantError
from tracekit.errors.capturing import BadParameterError, UnknownParameterError
from tracekit.run import Requested
from tracekit.run.settings import BACKEND, TIMEOUT_S, Settings

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
# Unless the intervals are narrow earlier. On a machine that others disturb for seconds at a time, a minute has enough
# quiet ones for a check to see a tenth.
_MIN_SECONDS_FOR_ROUNDS = 60
_SECONDS_A_VARIANT = 30
_MAX_SECONDS_FOR_ROUNDS = 600  # unless requested
_QUICK_SECONDS_FOR_ROUNDS = 12


class Options(Settings, frozen=True):
    """The options of one capture, beside the settings of its passes. All but the program have defaults."""

    program: str | Path  # a recipe or a script
    variants: Sequence[str] = ()  # none: eager, compiled and the recipe's own
    device: str = "auto"  # cuda if there is one
    backend: str = BACKEND
    timeout: float = TIMEOUT_S
    passes: int = 100  # unprofiled ones of a variant, at most
    budget: float | None = None  # seconds for the later passes of all variants; None: depends on their number
    precision: float | None = None  # to which the ratios must be known, as a share; None: 2 %, if the budget lasts
    min_detectable: float | None = None  # passes are taken until a check of two such captures would see it; a share
    quick: bool = False  # no traces and no losses, and a short budget
    explain_time: bool = False  # at the end, say where the time of the capture went
    seeds: int = 3  # to train each variant with, from `seed` on
    out: str | Path = "run.json"
    tell: Callable[[str], None] = messages.on_stderr

    def seconds_for_rounds(self, variants: int, first_s: float) -> float:
        """Seconds for the later passes of so many variants: those requested, or as long as the first ones took, within
        bounds."""
        if self.passes == 1:
            return 0.0
        if self.budget is not None:
            return self.budget
        if self.quick:
            return _QUICK_SECONDS_FOR_ROUNDS
        if self.min_detectable is not None or self.precision is not None:
            return _MAX_SECONDS_FOR_ROUNDS
        return min(_MAX_SECONDS_FOR_ROUNDS, max(_MIN_SECONDS_FOR_ROUNDS, _SECONDS_A_VARIANT * variants, first_s))


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
        times = variant_names[: len(planned)].count(name)
        variant = _planned(name, params, declared, backend)
        if times:
            variant = replace(variant, name=f"{name} again" if times == 1 else f"{name} again {times}")
        planned.append(variant)
    return planned


def _planned(
    name: str, params: Mapping[str, Any], declared: Mapping[str, Mapping[str, Any]], backend: str
) -> PlannedVariant:
    base, _, suffix = name.partition(":")
    settings: dict[str, Any] = {"compile": True}
    if base in declared:
        settings |= declared[base]
    elif base in ("eager", "compiled"):
        settings["compile"] = base == "compiled"
    elif base in MODES:
        settings["mode"] = base
    else:
        raise UnknownVariantError(base, [*dict.fromkeys(["eager", "compiled", *declared, *MODES])])

    pairs: dict[str, str] = {}
    for piece in filter(None, suffix.split(",")):
        key, equals, value = piece.partition("=")
        if not equals:
            raise BadParameterError(key, "", "a setting of the form NAME=VALUE")
        pairs[key] = value
    settings |= {key: parse(key, pairs.pop(key), _COMPILE_OPTIONS[key]) for key in [*pairs] if key in _COMPILE_OPTIONS}
    settings |= parse_all(pairs, params)
    overrides = {key: value for key, value in settings.items() if key not in _COMPILE_OPTIONS}
    check_known(overrides, params)

    if not settings["compile"]:
        return PlannedVariant(name, Requested(compile=False), overrides)
    mode = settings.get("mode")
    if mode is not None and mode not in MODES:
        raise BadParameterError("mode", mode, f"one of {', '.join(MODES)}")
    requested = Requested(
        compile=True,
        mode=mode,
        dynamic=settings.get("dynamic"),
        fullgraph=bool(settings.get("fullgraph", False)),
        backend=settings.get("backend", backend),
        options=dict(settings.get("options") or {}),
    )
    return PlannedVariant(name, requested, overrides)


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
        if name == "dynamic" and text.lower() in ("auto", "none"):
            return None
        if text.lower() not in _BOOLS:
            raise BadParameterError(name, text, "true or false")
        return _BOOLS[text.lower()]
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


def _convert(name: str, text: str, kind: type[int] | type[float], expected: str) -> int | float:
    try:
        return kind(text)
    except ValueError:
        raise BadParameterError(name, text, expected) from None
