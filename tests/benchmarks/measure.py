"""Each task in a separate process, measured from outside: seconds, CPU seconds, and memory without mapped files."""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
SAMPLE = ROOT / "sample_traces" / "run.json"
PIECES = ("read", "report", "hta", "before", "warm", "attribution", "start-up")
_LOOK_S = 0.02  # between two measurements of the memory


@dataclass(frozen=True)
class Ran:
    """What a process and its descendants took."""

    seconds: float
    cpu: float
    memory: int  # the most bytes that all of them had at a time, without mapped files (Linux; elsewhere 0)
    output: str
    errors: str
    code: int

    @property
    def answer(self) -> dict[str, Any]:
        """The last line that a task printed."""
        answer: dict[str, Any] = json.loads(self.output.splitlines()[-1])
        return answer


@dataclass
class Measured:
    """The rows of the table for one file."""

    title: str
    rows: dict[str, str] = field(default_factory=dict)


@dataclass
class Suite:
    """Everything that is measured for one file."""

    path: Path
    size: int  # bytes of JSON
    cache: Path
    workers: str
    turns: int

    def measure(self, pieces: Sequence[str], python: str, seed: Path, before: Path | None) -> Measured:
        """Run the tasks of some of PIECES, each several times; the best counts."""
        rows = {
            "read": lambda: self._reading(python),
            "report": self._report,
            "hta": lambda: self._against_hta(python),
            "before": lambda: self._against_before(before),
            "warm": self._warm,
            "attribution": self._attribution,
            "start-up": lambda: self._start_up(seed),
        }
        measured = Measured(f"{self.size / 1e6:,.0f} MB of JSON")
        for piece in pieces:
            measured.rows |= rows[piece]()
        return measured

    @cached_property
    def _cold(self) -> Ran:
        return self._best_verb("report", str(self.path))

    def _reading(self, python: str) -> dict[str, str]:
        ceiling = self._best(python, "ceiling", str(self.path))
        read = self._best(sys.executable, "read", str(self.path), self.workers)
        alone = self._best(sys.executable, "read", str(self.path), "1")
        assert read is not None
        assert alone is not None
        rows = {
            f"reading, with up to {self.workers} processes and with one": f"{_times(read)}; {_times(alone)}",
            "events with a duration": f"{read.answer['events'] / 1e6:,.2f} M",
        }
        if ceiling is not None:
            rows["gz JSON → columns on disk, against the ceiling"] = (
                f"{ceiling.seconds / read.seconds:.2f} ({ceiling.cpu / read.cpu:.2f} in CPU seconds); "
                f"{ceiling.seconds / alone.seconds:.2f} with one process ({ceiling.cpu / alone.cpu:.2f})"
            )
        return rows

    def _report(self) -> dict[str, str]:
        return {
            "a cold report": _times(self._cold),
            "memory of a cold report, all processes, mapped files apart": _mega(self._cold.memory),
        }

    def _against_hta(self, python: str) -> dict[str, str]:
        hta, report = self._once(python, "hta", str(self.path)), self._cold
        if hta is None:
            return {}
        return {
            "a cold report against HTA's load alone": (
                f"{hta.seconds / report.seconds:,.1f} × faster ({hta.cpu / report.cpu:,.1f} × the CPU seconds), "
                f"{hta.memory / max(report.memory, 1):,.0f} × the memory"
            )
        }

    def _against_before(self, before: Path | None) -> dict[str, str]:
        """Cold reports by this code and by that of another checkout, in turns."""
        if before is None:
            return {}
        ran: dict[Path, list[Ran]] = {ROOT: [], before: []}
        for _ in range(self.turns):
            for tree, runs in ran.items():
                runs.append(self.verb("report", str(self.path), tree=tree))
                shutil.rmtree(self.cache, ignore_errors=True)
        cpu, seconds = (
            min(getattr(run, name) for run in ran[ROOT]) / min(getattr(run, name) for run in ran[before])
            for name in ("cpu", "seconds")
        )
        return {
            f"a cold report against the code in {before.name}": f"{cpu:.2f} × the CPU seconds, {seconds:.2f} × the time"
        }

    def _warm(self) -> dict[str, str]:
        """What follows the first report and reads from the cache: another report, and an export."""
        self.verb("report", str(self.path))
        again = min((self.verb("report", str(self.path)) for _ in range(self.turns)), key=lambda ran: ran.seconds)
        export = self.verb("export", str(self.path), "-o", str(self.cache / "tables"))
        shutil.rmtree(self.cache, ignore_errors=True)
        return {
            "a report of a trace that was read before": _times(again),
            "memory of an export, mapped files apart": _mega(export.memory),
        }

    def _attribution(self) -> dict[str, str]:
        ran = min(
            (self._task(sys.executable, "attribution", str(self.path)) for _ in range(self.turns)),
            key=lambda each: float(each.answer["attribute_cpu"]),
        )
        answer = ran.answer
        million = answer["events"] / 1e6
        shutil.rmtree(self.cache, ignore_errors=True)
        return {
            "attribution from columns, events a second": (
                f"{million / answer['attribute_seconds']:,.1f} M; "
                f"{million / answer['attribute_cpu']:,.1f} M a CPU second"
            ),
            "attribution, memory of the process, mapped files apart": _mega(ran.memory),
        }

    def _start_up(self, seed: Path) -> dict[str, str]:
        small, sample = (self._best_verb("report", str(path)) for path in (seed, SAMPLE))
        return {
            "start-up: a report of the small trace that the large one repeats many times": _times(small),
            "a report of the sample run": _times(sample),
            "the help": _times(self._best_verb("--help")),
        }

    def _best(self, python: str, *task: str) -> Ran | None:
        """The fastest of several, each with an empty cache."""
        runs = [ran for _ in range(self.turns) if (ran := self._once(python, *task)) is not None]
        return min(runs, key=lambda ran: ran.seconds, default=None)

    def _once(self, python: str, *task: str) -> Ran | None:
        ran = self._task(python, *task)
        shutil.rmtree(self.cache, ignore_errors=True)
        if ran.code == 0:
            print(
                f"  {task[0]:12}{self.size / ran.seconds / 1e6:8,.0f} MB/s {ran.cpu:8,.2f} CPU s {_mega(ran.memory):>9}"
            )
            return ran
        why = (ran.errors.splitlines() or ["failed"])[-1]
        print(f"{task[0]}: left out ({why}). pip install traceinsight==0.6.1 pysimdjson isal", file=sys.stderr)
        return None

    def _best_verb(self, *arguments: str) -> Ran:
        runs = []
        for _ in range(self.turns):
            runs.append(self.verb(*arguments))
            shutil.rmtree(self.cache, ignore_errors=True)
        return min(runs, key=lambda ran: ran.seconds)

    def _task(self, python: str, *task: str) -> Ran:
        return self._run([python, "-m", "tests.benchmarks.tasks", *task])

    def verb(self, *arguments: str, tree: Path = ROOT) -> Ran:
        """Run a verb of the command line, by the code in a checkout."""
        return self._run([sys.executable, "-m", "tracekit", *arguments], tree)

    def _run(self, command: list[str], tree: Path = ROOT) -> Ran:
        environment = {**os.environ, "TRACEKIT_CACHE_DIR": str(self.cache), "PYTHONPATH": str(tree)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as installed: compiled once, not at every start
        self.cache.mkdir(exist_ok=True)
        return run(command, environment, tree, self.cache.parent)


def run(command: list[str], environment: dict[str, str], cwd: Path, scratch: Path) -> Ran:
    """Run a command, and look at what it takes; what it prints goes through files in `scratch`."""
    out, err = scratch / "printed.out", scratch / "printed.err"
    os.sync()  # earlier writes reach the disk now, not during the measurement
    with out.open("w") as output, err.open("w") as errors:
        used, began = _cpu(), time.perf_counter()
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=errors, cwd=cwd)
        memory = 0
        while process.poll() is None:
            memory = max(memory, sum(map(_anonymous, _family(process.pid))))
            time.sleep(_LOOK_S)
    seconds = time.perf_counter() - began
    return Ran(seconds, _cpu() - used, memory, out.read_text(), err.read_text(), process.returncode)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _family(pid: int) -> list[int]:
    """A process and its descendants."""
    family = [pid]
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split():
                family += _family(int(child))
    except OSError:
        pass
    return family


def _anonymous(pid: int) -> int:
    """Bytes of a process that are not mapped from a file."""
    try:
        fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        return int(fields["RssAnon"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return 0


def _times(ran: Ran) -> str:
    return f"{ran.seconds:,.2f} s, {ran.cpu:,.2f} CPU seconds"


def _mega(size: float) -> str:
    return f"{size / 1e6:,.0f} MB"
