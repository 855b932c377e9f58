"""python -m tests.fuzz --seconds 600 --targets trace,run_file: fuzzes each, and prints how far that went.

What is kept of a crash is in FOLDER/TARGET/crashes: the input, and beside it what Python said. Run
`python -m tests.fuzz --again FOLDER/TARGET/crashes/NAME` to see it happen.
"""

import argparse
import pkgutil
import re
import resource
import subprocess
import sys
from pathlib import Path

from tests.fuzz import targets
from tests.fuzz.sanitized import environment

ROOT = Path(__file__).resolve().parents[2]
NAMES = [module.name for module in pkgutil.iter_modules(targets.__path__)]
IN_C = ("scanner",)  # whose code is built with sanitizers
_LEAST_S, _MOST_S = 5, 600  # of a process: less is not worth a start, and in the long run memory fills with crumbs
_COVERAGE = re.compile(r"#(\d+)\t.*? cov: (\d+)")


def main() -> int:
    """Fuzz; 1 if anything crashed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600, help="of the processor, for each target")
    parser.add_argument("--targets", default=",".join(NAMES), help="default: %(default)s")
    parser.add_argument("--folder", type=Path, default=Path("out/fuzz"), help="what is found is kept here")
    parser.add_argument("--again", type=Path, help="run one input that crashed")
    options = parser.parse_args()
    if options.again is not None:
        return _again(options.again)
    rows = [fuzz(name, options.folder.resolve() / name, options.seconds) for name in options.targets.split(",")]
    print(f"{'target':16}{'seconds':>9}{'executions':>12}{'edges':>8}{'crashes':>9}")
    for name, seconds, executions, edges, crashes in rows:
        print(f"{name:16}{seconds:9,.0f}{executions:12,}{edges:8,}{len(crashes):9,}")
    for crash in sorted(crash for *_, crashes in rows for crash in crashes):
        print(f"crash: {crash}")
    return 1 if any(crashes for *_, crashes in rows) else 0


def fuzz(name: str, folder: Path, seconds: int) -> tuple[str, float, int, int, list[Path]]:
    """Fuzz a target, starting again where a hang or a sanitizer ended the process. Returns its name, the seconds of the
    processor, how many inputs were run, how many edges of the code they reached, and all crashes that are kept.

    What counts is the processor's time: beside other work, a fuzzer that waits finds nothing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    began_s, executions, edges = _children_s(), 0, 0
    surroundings = environment(folder, sanitize=name in IN_C)
    while (rest := seconds - (_children_s() - began_s)) > _LEAST_S or not executions:
        command = [
            sys.executable,
            "-m",
            "tests.fuzz.fuzzing",
            name,
            str(folder),
            str(min(max(round(rest), 1), _MOST_S)),
        ]
        with subprocess.Popen(command, cwd=ROOT, env=surroundings, stderr=subprocess.PIPE, text=True) as process:
            done = 0
            assert process.stderr is not None
            for line in process.stderr:
                print(line, end="", flush=True)
                if progress := _COVERAGE.match(line):
                    done, edges = int(progress[1]), max(edges, int(progress[2]))
        executions += done
        if not done:
            raise SystemExit(f"{name} cannot be fuzzed: the process ended before the first input")
    crashes = [path for path in sorted((folder / "crashes").iterdir()) if path.suffix != ".txt"]
    return name, _children_s() - began_s, executions, edges, crashes


def _children_s() -> float:
    """Seconds of the processor that all ended child processes took."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _again(crash: Path) -> int:
    """Run one input as the target that it belongs to does."""
    script = (
        "import importlib, sys, tempfile\nfrom pathlib import Path\n"
        "target = importlib.import_module(f'tests.fuzz.targets.{sys.argv[1]}')\n"
        "with tempfile.TemporaryDirectory() as folder:\n"
        "    target.take(Path(sys.argv[2]).read_bytes(), Path(folder))\n"
    )
    path = crash.resolve()
    command = [sys.executable, "-c", script, path.parents[1].name, str(path)]
    return subprocess.run(command, cwd=ROOT, env=environment(path.parents[1], sanitize=False), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
