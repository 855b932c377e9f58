"""Does every face say what it said before? Proves that a change of the code alone changes nothing that is written.

    python -m tests.frozen COMMIT [--subjects sample,worlds,traces] [--show]

Reads the sample run, the worlds and all real traces with the code of that commit and with that of the working tree,
cold and warm, writes every face and export of each, and every `--help`, and compares them byte by byte. With `--show`,
the first lines that differ are printed.
"""

import argparse
import difflib
import gzip
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from multiprocessing import get_context
from pathlib import Path

from tests.real import TRACES, trace_names, trace_path
from tests.world.worlds import world

ROOT = Path(__file__).resolve().parent.parent
WORLDS = 40
# What is written of each subject, by the verbs of the command line; {out} is a file or folder of its own.
FACES = {
    "text": "report {input} --format text",
    "text, full": "report {input} --format text --full",
    "text, warm": "report {input} --format text",
    "markdown": "report {input} --format markdown",
    "html": "report {input} -o {out}.html",
    "latex": "report {input} -o {out}.tex",
    "json": "report {input} --format json",
    "csv": "export {input} --format csv -o {out}",
    "parquet": "export {input} --format parquet -o {out}",
    "perfetto": "report {input} --format perfetto -o {out}.json.gz",
    "lines": "lines {input} --format json",
    "what-if": "what-if {input} --format json",
}
_CODE_VERSION = re.compile(rb'"code_version": ?"[^"]*"')  # names the code itself


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", nargs="?", default="HEAD")
    parser.add_argument("--subjects", default="help,sample,worlds,traces")
    parser.add_argument("--show", action="store_true", help="print the first lines that differ")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        write_all(options.write, options.subjects.split(","))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder, "before"), Path(folder, "after")
        written_by(checkout(options.commit, Path(folder, "tree")), before, options.subjects)
        written_by(ROOT, after, options.subjects)
        return compared(before, after, options.show)


def checkout(commit: str, folder: Path) -> Path:
    """The package and its tests at that commit, with the compiled reader of the working tree, and with this file."""
    folder.mkdir()
    command = ["git", "archive", commit, "tracekit", "tests", "sample_traces"]
    archive = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True)
    for library in ROOT.glob("tracekit/**/*.so"):
        shutil.copy(library, folder / library.relative_to(ROOT))
    shutil.copy(__file__, folder / "tests")
    return folder


def written_by(tree: Path, folder: Path, subjects: str) -> None:
    """All faces, written by the package that is in `tree`."""
    environment = os.environ | {"PYTHONPATH": f"{tree}:{tree / 'tests'}", "COLUMNS": "120", "TZ": "UTC"}
    environment["TRACEKIT_TRACES"] = str(TRACES)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process compiles the package
    command = [sys.executable, "-m", "tests.frozen", "--write", str(folder), "--subjects", subjects]
    subprocess.run(command, cwd=tree, env=environment, check=True)


def write_all(folder: Path, subjects: list[str]) -> None:
    """Write every face of every subject below the folder, two subjects at a time."""
    folder.mkdir(parents=True)
    with get_context("spawn").Pool(2, maxtasksperchild=8) as pool:
        pool.starmap(_write_faces, _jobs(folder, subjects), chunksize=1)


def _jobs(folder: Path, subjects: list[str]) -> Iterator[tuple[Path, str, str]]:
    """Where to write, the kind of subject, and which of them."""
    if "help" in subjects:
        yield folder / "help", "help", ""
    if "sample" in subjects:
        yield folder / "sample", "sample", ""
    if "worlds" in subjects:
        yield from ((folder / f"world-{seed}", "world", str(seed)) for seed in range(WORLDS))
    if "traces" in subjects:
        yield from ((folder / name, "trace", name) for name in trace_names())


def _write_faces(folder: Path, kind: str, name: str) -> None:
    from tracekit.cli.program import VERBS

    folder.mkdir()
    if kind == "help":
        for verb in ("", *(each.name for each in VERBS)):
            _run(f"{verb} --help", folder / f"{verb or 'tracekit'}.txt")
        return
    temporary = Path(tempfile.gettempdir(), f"frozen-{kind}-{name}")  # the same for both versions: faces name it
    temporary.mkdir()
    try:
        os.environ["TRACEKIT_CACHE_DIR"] = str(temporary / "cache")
        os.chdir(temporary)
        for face, command in FACES.items():
            out = folder / face.replace(", ", "-")
            _run(command.format(input=_input(kind, name, temporary), out=out), out.with_suffix(".txt"))
    finally:
        shutil.rmtree(temporary)


def _input(kind: str, name: str, temporary: Path) -> str:
    """The path of a subject, the same for both versions: what is written names it."""
    path = temporary / kind
    if kind == "trace":
        return str(trace_path(name))
    if kind == "sample" and not path.exists():
        shutil.copytree(ROOT / "sample_traces", path)
    if kind == "world" and not path.exists():
        world(int(name)).write(path)
    return "sample/run.json" if kind == "sample" else kind


def _run(command: str, says: Path) -> None:
    """What the command line prints, stdout and stderr, to a file."""
    from tracekit.cli.program import main as tracekit

    with says.open("w") as file, redirect_stdout(file), redirect_stderr(file):
        try:
            print(f"exit code {tracekit(shlex.split(command))}")
        except SystemExit as exit_:
            print(f"exit code {exit_.code}")


def compared(before: Path, after: Path, show: bool) -> int:
    """Prints what differs; returns 1 if anything does."""
    names = sorted({path.relative_to(side) for side in (before, after) for path in side.rglob("*") if path.is_file()})
    differing = [name for name in names if _content(before, name) != _content(after, name)]
    for name in differing:
        print(f"differs: {name}")
        if show and name.suffix != ".parquet":
            sides = [_content(side, name).decode(errors="replace").splitlines() for side in (before, after)]
            print(
                "\n".join(
                    line[:200] for line in [*difflib.unified_diff(*sides, "before", "after", lineterm="", n=0)][:12]
                )
            )
    print(f"{len(names)} files, {len(differing)} of them differ")
    return bool(differing) or not names


def _content(side: Path, name: Path) -> bytes:
    """Without the paths of either version, and without the name of the code."""
    path = side / name
    if not path.exists():
        return b""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return _CODE_VERSION.sub(b"", content.replace(str(side).encode(), b""))


if __name__ == "__main__":
    sys.exit(main())
