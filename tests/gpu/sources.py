"""What guides and courses promise of compiled graph networks, beside what is measured here: nothing else may run.

Every variant has a process of its own, and all of them set up and compile side by side. Then one at a time takes steps,
in turns with those that it is compared with. This is repeated with new processes, because two processes that do the
same differ, too. Each line says what was claimed, and the ratio of unprofiled step times with its interval at 95 %. A
claim that does not hold is a result and no failure: only a variant that fails is.
"""

import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path
from statistics import fmean, median, stdev

from tests.gpu.claims import Claims
from tests.gpu.running import ROOT
from tracekit.capture.options import split_names
from tracekit.statistics.uncertainty import student_t

# Recipe, its variants, the first of which is compared with; parameters; then what was promised of it.
_CLAIMS: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    (
        "gcn_cora",
        "eager,compiled,compiled-norm,reduce-overhead:norm_ahead=true,max-autotune:norm_ahead=true",
        ("hidden=128",),
        "GCN on Cora trains 34 % faster compiled",
    ),
    ("pathologies/syncs", "before,after", (), "waits between host and device cost time"),
    (
        "gcn_sampled",
        "baseline,sampled,sampled-amp,baseline-compiled",
        (),
        "sampled in mixed precision is faster than the whole graph, compiled is faster still",
    ),
    (
        "pathologies/pipeline",
        "eager,1-dynamic,2-tensor-lr,3-whole-graph,4-no-cudagraphs,5-no-syncs",
        ("rows=5000",),
        "five steps of a pipeline train 30 to 35 % faster than eager",
    ),
    ("gat_pubmed", "eager,compiled:loops_ahead=true", ("dataset=cora",), "GAT on Cora trains 28 % faster compiled"),
    ("gcn_amp", "fp32,bf16,bf16-compiled", (), "mixed precision is faster"),
    (
        "sage_products",
        "eager,dynamic,padded,reduce-overhead:padded=true,dynamic=false",
        ("scale=0.02",),
        "GraphSAGE on sampled batches trains 22 % faster compiled",
    ),
)
SECONDS = 290  # for all rounds, of which there are two at least
_READY_S = (150, 75, 75)  # for all processes of a round: the first one compiles, the others find it in their caches
_TURNS, _TURN_S = 6, 0.2  # of each variant
_ANSWER_S = 30
_ANSWER = "answer "


class _Process:
    """One variant, in a process of its own."""

    def __init__(self, recipe: str, name: str, params: tuple[str, ...], device: str, log: Path, caches: str) -> None:
        self.recipe, self.name = recipe, name
        variables = {"TORCHINDUCTOR_CACHE_DIR": f"{caches}/inductor", "TRITON_CACHE_DIR": f"{caches}/triton"}
        # Many processes compile at once.
        variables |= {"TORCHINDUCTOR_COMPILE_THREADS": "2", "OMP_NUM_THREADS": "4", "PYTHONHASHSEED": "0"}
        path = str(ROOT / "recipes" / f"{recipe}.py")
        self._child = subprocess.Popen(
            [sys.executable, "-m", "tests.gpu.stepping", path, name, device, *params],
            cwd=ROOT,
            env={**os.environ, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log.open("w"),
            text=True,
        )

    def answer(self, seconds: float) -> str:
        """Its next answer; empty where none came in time."""
        assert self._child.stdout is not None
        over = threading.Timer(max(seconds, 0.1), self._child.kill)
        over.start()
        try:
            for line in self._child.stdout:
                if line.startswith(_ANSWER):
                    return line.removeprefix(_ANSWER).strip()
            return ""
        finally:
            over.cancel()

    def ask(self, what: str) -> str:
        """What it answers to that; empty if it is gone."""
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(f"{what}\n")
            self._child.stdin.flush()
        except OSError:
            return ""
        return self.answer(_ANSWER_S)

    def end(self) -> None:
        """Kill it: it has nothing to finish."""
        self._child.kill()
        self._child.wait()


def check(claims: Claims) -> None:
    """Measure all claims in several rounds, and record some steps in the first one."""
    folder = claims.folder / "sources"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [each for each in _CLAIMS if not claims.recipes or Path(each[0]).name in claims.recipes]
    seen: dict[tuple[str, str], list[float]] = defaultdict(list)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as caches:
        for number, ready_s in enumerate(_READY_S):
            began = time.monotonic()
            processes = [
                _Process(recipe, name, params, claims.device, folder / f"{Path(recipe).name}-{place}.log", caches)
                for recipe, names, params, _ in wanted
                for place, name in enumerate(split_names(names))
            ]
            able = [each for each in processes if each.answer(began + ready_s - time.monotonic())]
            claims.note(f"round {number + 1}: {len(able)} of {len(processes)} ready, {time.monotonic() - began:.0f} s")
            for recipe, *_ in wanted:
                for each, ms in _in_turns([each for each in able if each.recipe == recipe]).items():
                    seen[recipe, each.name].append(ms)
                    claims.note(f"{recipe} {each.name}: {ms:.3f} ms")
            if number == 0:
                for each in able:
                    each.ask(f"record {folder / Path(each.recipe).name / each.name.partition(':')[0]}")
            for each in processes:
                each.end()
            took = time.monotonic() - began
            if number and time.monotonic() - started + took > SECONDS:
                claims.note(f"no time is left for round {number + 2}")
                break
    for recipe, names, _, promised in wanted:
        claims.note(f"{recipe}, promised: {promised}")
        first, *others = split_names(names)
        for name in (first, *others):
            ms = seen[recipe, name]
            claims.that(ms, f"{recipe}: {name}", ms=[round(each, 3) for each in ms])  # some compile for whole rounds
            if name != first and len(ms) == len(seen[recipe, first]) > 1:
                claims.note(f"  {name}: {_compared(ms, seen[recipe, first])}")


def _in_turns(variants: list[_Process]) -> dict[_Process, float]:
    """The median ms a step of each, there and back."""
    times: dict[_Process, list[float]] = defaultdict(list)
    for turn in range(_TURNS):
        for each in variants[:: -1 if turn % 2 else 1]:
            if told := each.ask(f"time {_TURN_S}"):
                times[each].append(float(told))
    return {each: median(ms) for each, ms in times.items()}


def _compared(ms: list[float], base: list[float]) -> str:
    logs = [math.log(one / other) for one, other in zip(ms, base, strict=True)]
    half = student_t(len(logs) - 1, 0.95) * stdev(logs) / math.sqrt(len(logs))
    ratio, low, high = (math.exp(fmean(logs) + moved) for moved in (0, -half, half))
    return f"{ratio:.3f} times as long ({low:.3f} to {high:.3f})"
