"""A first run on a machine with a GPU: `make gpu`, or `python -m tests.gpu [FOLDER]` from the repository's root.

Sections run one after another, the most important first, each in a separate process and with a time limit, all of them
within ten minutes. Every claim is one line, PASS or FAIL (SKIP if no time was left); traces and runs stay in the
folder. It needs the machine's own PyTorch, 2.6 to 2.13, and no network; other packages that the machine lacks are taken
from the wheels in `--wheels FOLDER`. `--cpu` runs what can be run without a GPU.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.gpu import dependencies
from tests.gpu.sections import SECTIONS, Section

ROOT = Path(__file__).parents[2]
_ALL_SECONDS = 580
_ON_A_CPU = 10  # times as long on a CPU, where it is not urgent and the machine has other work
_LEAST_SECONDS = 15  # with fewer seconds left, no section begins


def main() -> int:
    """Run every section. Returns 1 if a claim failed."""
    options = _options()
    if options.one:
        return _here(options)
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(dependencies.paths(ROOT, folder, options.wheels))}
    began, failed, times = time.monotonic(), 0, _ON_A_CPU if options.cpu else 1
    for section in _wanted(options):
        left = times * _ALL_SECONDS - (time.monotonic() - began)
        if left < _LEAST_SECONDS:
            print(f"SKIP {section.name}: no time was left for it", flush=True)
            continue
        print(f"== {section.name}, {section.about}", flush=True)
        failed += _in_a_process(section, min(times * section.seconds, left), options, environment)
    print(
        f"== {'all passed' if not failed else 'sections that failed: ' + str(failed)}, "
        f"{time.monotonic() - began:.0f} s; traces and runs are in {folder}"
    )
    return int(failed > 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.gpu", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("gpu-run"), help="for what is taken (gpu-run)")
    parser.add_argument("--cpu", action="store_true", help="run what can be run without a GPU")
    parser.add_argument("--wheels", type=Path, metavar="FOLDER", help="of what this machine lacks beside PyTorch")
    parser.add_argument("--only", default="", metavar="A,B", help=f"of {', '.join(each.name for each in SECTIONS)}")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    return parser.parse_args()


def _wanted(options: argparse.Namespace) -> list[Section]:
    names = [name for name in options.only.split(",") if name]
    unknown = set(names) - {each.name for each in SECTIONS}
    if unknown:
        sys.exit(f"no section is named {', '.join(sorted(unknown))}")
    wanted = [each for each in SECTIONS if each.name in names or not (names or each.only_if_named)]
    return [each for each in wanted if each.on_a_cpu or not options.cpu]


def _in_a_process(section: Section, seconds: float, options: argparse.Namespace, environment: dict[str, str]) -> bool:
    """Run one section in a separate process. Returns whether it failed."""
    command = [sys.executable, "-m", "tests.gpu", str(options.folder.resolve()), "--one", section.name]
    child = subprocess.Popen(
        [*command, *(["--cpu"] if options.cpu else [])], cwd=ROOT, env=environment, start_new_session=True
    )
    try:
        return child.wait(seconds) != 0
    except subprocess.TimeoutExpired:
        print(f"FAIL {section.name}: took longer than {seconds:.0f} s", flush=True)
        return True
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)


def _here(options: argparse.Namespace) -> int:
    from tests.gpu.claims import Claims

    claims = Claims(options.folder, "cpu" if options.cpu else "cuda")
    section = next(each for each in SECTIONS if each.name == options.one)
    claims.run(section)
    return int(claims.failed > 0)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # a hanging kernel would keep us waiting
