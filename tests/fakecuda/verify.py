"""What `make verify-cuda` runs on the fake GPU, part after part: `python -m tests.fakecuda -m tests.fakecuda.verify
[--only WORD,…] [FOLDER]`.

Each part has its own process and time limit, and a line that says how it ended: one that hangs stops no other. Wherever
a function that the fake does not have is called, the part fails and names it. All that is printed and captured stays in
the folder.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
# The tests' conftest needs packages that are of no use here.
PYTEST = ["-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", str(ROOT), "--noconftest", "-p", "no:cacheprovider"]
GPU = {"injected": 200, "modes": 420, "recipes": 300, "faults": 150, "sessions": 120, "doctor": 150}
SIZES = {
    "gat_pubmed": ["scale=0.1"],
    "gin_arxiv": ["scale=0.02"],
    "sage_products": ["scale=0.002", "batch=64"],
    "rgcn_mag": ["scale=0.002"],
    "sage_collab": ["scale=0.004"],
    "distmult_biokg": ["scale=0.002"],
    "gin_molecules": ["scale=0.2"],
    "relational": ["scale=0.0005", "batch=64"],
    "hetero_parts": ["scale=0.2"],
    "graph_transformer": ["scale=0.1", "batch=32"],
    "growing_graph": ["nodes=1000"],
}
# The other causes need sizes that kernels compute, which are none here.
VARIANTS = {
    "graph_breaks": "item,print,degree-size",
    "syncs": "metric,mean-metric,mask,after",
    "pipeline": "3-whole-graph,5-no-syncs",
}
# Each captures for less than two minutes, unless it compiles much.
MODES = "eager,compiled,reduce-overhead"
CAPTURE = ["--device", "cuda", "--passes", "1", "--steps", "4", "--warmup", "4", "--timeout", "150"]


@dataclass(frozen=True)
class Part:
    """A command of this Python, how many seconds it may take, and the run that it captures, if it does."""

    name: str
    command: list[str]
    seconds: int
    run: Path | None = None
    devices: int = 1


def parts(folder: Path) -> Iterator[Part]:
    """All of them, the most telling first."""
    for file in sorted(Path(__file__).parent.glob("test_*.py")):
        yield Part(file.stem, [*PYTEST, str(file)], 400)
    for section, seconds in GPU.items():
        yield Part(f"gpu-{section}", ["-m", "tests.gpu", str(folder / "gpu"), "--only", section], seconds)
    ddp = _capture(folder, Path(__file__).with_name("ddp.py"), ["--nproc", "2", "--variants", "eager"], ["--", "200"])
    yield replace(ddp, devices=2)
    for file in sorted((ROOT / "recipes").glob("*.py")):
        yield _capture(folder, file, ["--variants", MODES])
    for file in sorted((ROOT / "recipes/pathologies").glob("*.py")):
        named = VARIANTS.get(file.stem)
        yield _capture(folder, file, ["--variants", named] if named else [])


def _capture(folder: Path, file: Path, options: list[str], arguments: Sequence[str] = ()) -> Part:
    run = folder / file.stem / "run.json"
    sizes = [option for size in SIZES.get(file.stem, []) for option in ("--param", size)]
    command = ["-m", "tracekit", "capture", str(file), *CAPTURE, *options, *sizes, "-o", str(run), *arguments]
    return Part(f"capture-{file.stem}", command, 900, run)


def main() -> int:
    """Returns 1 if a part failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out/fakecuda"), help="for all output")
    parser.add_argument("--only", default="", metavar="WORD,…", help="parts whose names have one of these words")
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    folder, failed, began = options.folder.resolve(), [], time.monotonic()
    words = options.only.split(",")
    for part in parts(folder):
        if any(word in part.name for word in words):
            before = time.monotonic()
            wrong, seen = _perform(part, folder)
            failed += [part.name] if wrong else []
            took = f"{time.monotonic() - before:4.0f} s"
            print(f"{'FAIL' if wrong else 'PASS'} {part.name:24} {took}  {wrong or seen}", flush=True)
    ended = f"failed: {', '.join(failed)}" if failed else "all passed"
    print(f"== {ended}, {time.monotonic() - began:.0f} s; what was printed and captured is in {folder}")
    return int(bool(failed))


def _perform(part: Part, folder: Path) -> tuple[str, str]:
    """What went wrong, empty if nothing did, and what came out."""
    log, called = folder / f"{part.name}.log", folder / f"{part.name}.unknown"
    if part.run:
        part.run.parent.mkdir()
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, *part.command],
            cwd=ROOT,
            env={
                **os.environ,
                "FAKECUDA_UNKNOWN": str(called),
                "TORCHINDUCTOR_COMPILE_THREADS": "1",
                "FAKECUDA_DEVICES": str(part.devices),
            },
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(part.seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return f"took longer than {part.seconds} s", ""
    if called.exists():
        return f"called {', '.join(sorted({*called.read_text().split()}))}, which the fake does not have", ""
    if code or not part.run:
        return f"ended with {code}: {_last(log)}" if code else "", _last(log)
    return _captured(part.run, log)


def _captured(run: Path, log: Path) -> tuple[str, str]:
    """Whether every variant was captured, on the fake GPU, and is reported."""
    captured = json.loads(run.read_text())
    variants, gpus = captured["variants"], {gpu["name"] for gpu in captured["environment"]["gpus"]}
    lost = [f"{each['name']}: {each['outcome']}, {each['error']}" for each in variants if each["outcome"] != "ok"]
    if lost or gpus != {"Fake H100"}:
        return "; ".join(lost) or f"the GPUs are {gpus}", ""
    with (run.parent / "report.txt").open("w") as report:
        command = [sys.executable, "-m", "tracekit", "report", str(run)]
        if subprocess.run(command, cwd=ROOT, stdout=report, stderr=log.open("a"), check=False).returncode:
            return f"no report: {_last(log)}", ""
    return "", ", ".join(f"{each['name']} {each['measured']['step_ns'] / 1e6:.2f} ms" for each in variants)


def _last(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


if __name__ == "__main__":
    sys.exit(main())
