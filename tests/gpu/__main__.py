"""A first run on a machine with a GPU: `make gpu`, or `python -m tests.gpu [FOLDER]` from the repository's root.

Each section runs in a separate process and with a time limit, all of them within ten minutes: first one after another
those whose claims are about times, then the others side by side, on a share of the cores each. Every claim is one line,
PASS or FAIL (SKIP if no time was left); traces, runs and logs stay in the folder. It needs the machine's own PyTorch,
2.6 to 2.13, and no network; other packages that the machine lacks are taken from the wheels in `--wheels FOLDER`.
`--cpu` runs what can be run without a GPU.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.gpu import dependencies
from tests.gpu.sections import ALONE, LANES, SECTIONS, Lane, Section

ROOT = Path(__file__).parents[2]
_ALL_SECONDS = 580
_ON_A_CPU = 10  # times as long on a CPU, where it is not urgent and the machine has other work
_LEAST_SECONDS = 15  # with fewer seconds left, no section begins
_CORES_OF_LANES = 8  # with fewer cores, nothing runs side by side


def main() -> int:
    """Run every section. Returns 1 if a claim failed."""
    options = _options()
    if options.one:
        return _here(options)
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(dependencies.paths(ROOT, folder, options.wheels))}
    began, times = time.monotonic(), _ON_A_CPU if options.cpu else 1
    turns = _Turns(options, environment, began + times * options.seconds, times)
    failed = sum(turns.each(ALONE, ()))
    lanes = [*_with_cores(LANES)]
    with ThreadPoolExecutor(len(lanes)) as pool:
        failed += sum(pool.map(lambda lane: sum(turns.each(*lane)), lanes))
    print(
        f"== {'all passed' if not failed else 'sections that failed: ' + str(failed)}, "
        f"{time.monotonic() - began:.0f} s; traces and runs are in {folder}"
    )
    return int(failed > 0)


def _with_cores(lanes: tuple[Lane, ...]) -> Iterator[tuple[tuple[Section, ...], tuple[int, ...]]]:
    """The sections of each lane with its cores; those of all lanes in one if there are few cores, on any."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < _CORES_OF_LANES:
        yield tuple(section for lane in lanes for section in lane.sections), ()
        return
    begin = 0.0
    for lane in lanes:
        end = begin + lane.share * len(cores)
        yield lane.sections, tuple(cores[round(begin) : round(end)])
        begin = end


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.gpu", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("gpu-run"), help="for what is taken (gpu-run)")
    parser.add_argument("--cpu", action="store_true", help="run what can be run without a GPU")
    parser.add_argument("--wheels", type=Path, metavar="FOLDER", help="of what this machine lacks beside PyTorch")
    parser.add_argument("--seconds", type=int, default=_ALL_SECONDS, help=f"for all sections ({_ALL_SECONDS})")
    parser.add_argument("--only", default="", metavar="A,B", help=f"of {', '.join(each.name for each in SECTIONS)}")
    parser.add_argument("--recipes", default="", metavar="A,B", help="for sources and pathologies: only these")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    return parser.parse_args()


@dataclass(frozen=True)
class _Turns:
    """Runs those sections that are wanted, until the time is over."""

    options: argparse.Namespace
    environment: dict[str, str]
    ends: float
    times: int

    def each(self, sections: Iterable[Section], cores: tuple[int, ...]) -> Iterator[bool]:
        """Run one after another, on these cores if any are given, and yield whether it failed."""
        for section in self._wanted(sections):
            left = self.ends - time.monotonic()
            if left < _LEAST_SECONDS:
                print(f"SKIP {section.name}: no time was left for it", flush=True)
            else:
                yield self._in_a_process(section, min(self.times * section.seconds, left), cores)

    def _wanted(self, sections: Iterable[Section]) -> list[Section]:
        names = [name for name in self.options.only.split(",") if name]
        unknown = set(names) - {each.name for each in SECTIONS}
        if unknown:
            sys.exit(f"no section is named {', '.join(sorted(unknown))}")
        wanted = [each for each in sections if each.name in names or not (names or each.only_if_named)]
        return [each for each in wanted if each.on_a_cpu or not self.options.cpu]

    def _in_a_process(self, section: Section, seconds: float, cores: tuple[int, ...]) -> bool:
        """Run one section in a separate process, print what it says once it has ended, and return whether it failed."""
        folder = self.options.folder.resolve()
        command = [sys.executable, "-m", "tests.gpu", str(folder), "--one", section.name]
        command += [*(["--cpu"] if self.options.cpu else []), "--recipes", self.options.recipes]
        log, began = folder / f"{section.name}.log", time.monotonic()
        with log.open("w") as output:
            child = subprocess.Popen(
                command, cwd=ROOT, env=self.environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
            if cores:
                os.sched_setaffinity(child.pid, cores)
            try:
                failed, over = child.wait(seconds) != 0, ""
            except subprocess.TimeoutExpired:
                failed, over = True, f"FAIL {section.name}: took longer than {seconds:.0f} s\n"
            finally:
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)
        title = f"== {section.name}, {section.about} ({time.monotonic() - began:.0f} s)"
        print(f"{title}\n{log.read_text(errors='replace')}{over}", end="", flush=True)
        return failed


def _here(options: argparse.Namespace) -> int:
    from tests.gpu.claims import Claims

    recipes = tuple(name for name in options.recipes.split(",") if name)
    claims = Claims(options.folder, "cpu" if options.cpu else "cuda", recipes)
    section = next(each for each in SECTIONS if each.name == options.one)
    claims.run(section)
    return int(claims.failed > 0)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # a hanging kernel would keep us waiting
