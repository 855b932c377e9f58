"""Runs: what `tracekit capture` writes, and everything else reads.

The file is written atomically, versioned and validated; an earlier run is never lost. How the steps of a program differ
is decided once for a run, from all its passes together: each pass alone would decide by itself whether it quotes a
median or a mean over periods, and an average over passes would mix both.
"""

import math
import os
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tracekit.base import disclosure
from tracekit.base.atomic import replacing
from tracekit.errors.asking import OutputError
from tracekit.errors.reading import BadRunError, DirectoryGivenError, NoSuchFileError, UnreadableFileError
from tracekit.run.ledger import Break, Compile, Ledger, Limit, Skip
from tracekit.run.model import (
    SCHEMA,
    WINDOWS,
    Activity,
    Effective,
    GraphSizes,
    Measured,
    Memory,
    Outcome,
    Pass,
    Profiled,
    RankTraces,
    Requested,
    Run,
    StageTime,
    Traces,
    Training,
    Turn,
    Variant,
    Window,
    Workload,
    crowding,
    divergence,
    gradient_tolerance,
    loss_tolerance,
    times_apart,
    was_busy,
)
from tracekit.statistics.typical_step import step_pattern, typical_steps
from tracekit.statistics.uncertainty import typical
from tracekit.vocabulary.graph_size import GraphSize

__all__ = [
    "SCHEMA",
    "WINDOWS",
    "Activity",
    "Break",
    "Compile",
    "Effective",
    "GraphSize",
    "GraphSizes",
    "Ledger",
    "Limit",
    "Measured",
    "Memory",
    "Outcome",
    "Pass",
    "Profiled",
    "RankTraces",
    "Requested",
    "Run",
    "Skip",
    "StageTime",
    "Traces",
    "Training",
    "Turn",
    "Variant",
    "Window",
    "Workload",
    "crowding",
    "divergence",
    "gradient_tolerance",
    "is_run",
    "loss_tolerance",
    "now",
    "read",
    "stamp",
    "times_apart",
    "was_busy",
    "with_common_period",
    "write",
]
_SNIFFED_BYTES = 4096


def with_common_period(run: Run) -> Run:
    """The run with the step times of all passes by the pattern that all of them show together.

    Variants of the same parameters run the same steps, so they have one pattern.
    """
    timed = [(variant, variant.measured) for variant in run.variants if variant.measured and variant.measured.passes]
    by_name: dict[str, Measured] = {}
    for variant, _ in timed:
        if variant.name in by_name:
            continue
        program = variant.params, variant.workload
        of_program = [(twin, measured) for twin, measured in timed if (twin.params, twin.workload) == program]
        # The pattern of all their passes or, where these show none together, that of the variant that shows one.
        times = [[timed_pass.step_all_ns for timed_pass in measured.passes] for _, measured in of_program]
        in_a_row = [
            [steps for timed_pass in measured.passes for steps in timed_pass.steps_in_a_row]
            for _, measured in of_program
        ]
        pattern = step_pattern([*chain(*times)], [*chain(*in_a_row)])
        if pattern.period == 1:
            candidates = [pattern, *map(step_pattern, times, in_a_row)]
            pattern = max(candidates, key=lambda candidate: (candidate.period, not candidate.alike))
        for (member, measured), step_times in zip(of_program, times, strict=True):
            passes = [
                replace(timed_pass, step_ns=step_ns, alike=pattern.alike, period=pattern.period)
                for timed_pass, step_ns in zip(measured.passes, typical_steps(step_times, pattern), strict=True)
            ]
            counted = [math.log(timed_pass.step_ns) for timed_pass in passes if timed_pass.counted]
            step_ns = max(1, round(math.exp(typical(counted))))
            by_name[member.name] = replace(measured, step_ns=step_ns, passes=passes)
    variants = [replace(variant, measured=by_name.get(variant.name, variant.measured)) for variant in run.variants]
    return replace(run, variants=variants)


def is_run(source: str | Path | bytes) -> bool:
    """Whether this looks like a run file; reads at most 4 KiB."""
    if not isinstance(source, bytes):
        try:
            with open(source, "rb") as file:
                source = file.read(_SNIFFED_BYTES)
        except OSError:
            return False
    head = source[:_SNIFFED_BYTES].removeprefix(b"\xef\xbb\xbf").lstrip()
    return head.startswith(b"{") and b'"tracekit.run/' in head


def read(path: str | Path) -> Run:
    """Read and validate a run file."""
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise NoSuchFileError(path) from None
    except IsADirectoryError:
        raise DirectoryGivenError(path) from None
    except OSError as error:
        raise UnreadableFileError(path, error.strerror or str(error)) from None
    run, filter_ = _decode(content, path), disclosure.current()
    return filter_.run(run) if filter_ is not None else run


def write(run: Run, path: str | Path) -> Path | None:
    """Write the run atomically; returns the path to which an earlier run was moved, `run-<its time>.json`, if any.

    A symbolic link remains, and its target is replaced.
    """
    path = Path(os.path.realpath(path) if os.path.islink(path) else path)
    content = msgspec.json.format(msgspec.json.encode(run), indent=1)
    try:
        with replacing(path, durable=True) as part:
            part.write_bytes(content + b"\n")
            aside = _keep_earlier(path, run)
    except OSError as error:
        raise OutputError(path, error.strerror or str(error)) from None
    return aside


def now() -> str:
    """The time for `created`, with offset and microseconds."""
    return datetime.now(UTC).astimezone().isoformat()


def stamp(created: str) -> str:
    """`2026-11-21T07:05:01+00:00` → `20261121-070501`, as in the names of folders and earlier runs."""
    return datetime.fromisoformat(created).strftime("%Y%m%d-%H%M%S")


def _decode(content: bytes, path: str | Path) -> Run:
    try:
        schema = msgspec.json.decode(content, type=_Header).schema
        if schema.rpartition("/")[0] != "tracekit.run":
            raise BadRunError(path, "it has no tracekit.run schema")
        if schema != SCHEMA:
            raise BadRunError(path, f"its schema is {schema}, this version reads {SCHEMA}")
        run = msgspec.json.decode(content, type=Run)
        datetime.fromisoformat(run.created)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise BadRunError(path, str(error).splitlines()[0]) from None
    names = [variant.name for variant in run.variants]
    if not names or len(set(names)) < len(names):
        raise BadRunError(path, "two variants share a name" if names else "it holds no variants")
    return run


class _Header(msgspec.Struct):
    schema: str = ""


def _keep_earlier(path: Path, run: Run) -> Path | None:
    """Link an earlier run to a second name, which is returned; `path` itself stays until the new run replaces it."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        created = _decode(content, path).created
    except BadRunError:
        created = datetime.fromtimestamp(path.stat().st_mtime).isoformat()
    if created == run.created:
        return None
    aside = first_choice = path.with_name(f"{path.stem}-{stamp(created)}{path.suffix}")
    tries = 1
    while True:
        try:
            os.link(path, aside)
            return aside
        except FileExistsError:
            if aside.is_file() and aside.read_bytes() == content:
                return aside  # an earlier capture was killed after linking and before replacing
            tries += 1
            aside = first_choice.with_stem(f"{first_choice.stem}-{tries}")
        except OSError:  # a file system without hard links
            with replacing(aside, durable=True) as part:
                part.write_bytes(content)
            return aside
