"""A run file, beside two traces that are as they should be."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import small
from real import ROOT

from tests.fuzz import verbs
from tests.fuzz.targets import changed_json, written

# As of traces, but beginning with the verb, whose input is the run.
COMMANDS: tuple[tuple[tuple[str, ...], str | None], ...] = (
    (("report", "--full"), None),
    *((("report", "--full", "--format", name), f"report.{name}") for name in ("html", "json", "markdown", "latex")),
    (("report", "--format", "csv"), "tables"),
    (("export",), "tables"),
    (("explain",), None),
    (("what-if",), None),
    (("lines",), None),
    (("plot", "--kind", "measures"), "chart.svg"),
    (("plot", "--kind", "waterfall"), "chart.svg"),
    (("check", "--against"), None),
)
WORDS = (
    *("ok", "oom", "timeout", "crash", "error", "skipped", "interrupted", "failed", "training", "inference"),
    *("steady.json", "cold.json", "../run.json", "run.json", "/dev/null", "cuda events", "perf_counter"),
    *("step_ns", "step_all_ns", "passes", "turns", "counted", "alike", "period", "losses", "graphs", "ledger"),
    *("compiles", "breaks", "limits", "skips", "reason", "guard", "trainings", "epoch_all_ns", "metrics", "params"),
)
_RUNS = ("sample_traces/h100/gcn_cora/run.json", "sample_traces/run.json")
_LONGEST = 6  # entries of a list: the rest says the same again
_MOST_BYTES = 30_000


def seeds() -> Iterator[bytes]:
    for path in (ROOT / name for name in _RUNS):
        run = _shortened(json.loads(path.read_bytes()))
        for variant in run["variants"]:
            variant["traces"] = {"steady": "steady.json", "cold": "cold.json"}
        for number in range(len(COMMANDS)):
            yield bytes([number]) + written(run)
        yield b"\0" + written({**run, "variants": run["variants"][:1]})


def change(data: bytes, random: Random) -> bytes:
    result = changed_json(data[1:], random, WORDS)
    command = random.randrange(len(COMMANDS)) if random.random() < 0.1 else data[0] if data else 0
    return bytes([command]) + result


def take(data: bytes, folder: Path) -> None:
    if not data:
        return
    for name in ("steady", "cold"):
        if not (folder / f"{name}.json").exists():
            small.training(folder / f"{name}.json")
    (verb, *options), output = COMMANDS[data[0] % len(COMMANDS)]
    path = folder / "run.json"
    path.write_bytes(data[1:])
    if verb == "check":
        options = ["--against", str(path)]
    verbs.run(verb, str(path), *options, "--no-cache", output=None if output is None else folder / output)


def _shortened(value: object) -> object:
    if isinstance(value, dict):
        return {key: _shortened(entry) for key, entry in value.items()}
    return [*map(_shortened, value[:_LONGEST])] if isinstance(value, list) else value
