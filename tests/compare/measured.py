"""Asks a tool in an environment of its own, and measures what its first table takes."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

from tests.benchmarks.measure import run
from tests.compare.peer import Peer, module

ROOT = Path(__file__).parents[2]
_WORDS = 120  # characters of an error message that are kept


class AbsentError(Exception):
    """A tool cannot be had here."""


def interpreter(peer: Peer, environments: Path) -> Path:
    """The Python in which the tool runs: made and filled by pip at first, or when what it needs has changed."""
    if not peer.requires:
        return Path(sys.executable)
    home = environments / peer.id
    python, note = home / "bin" / "python", home / "requires.txt"
    wanted = "\n".join(peer.requires)
    if not note.exists() or note.read_text(encoding="utf-8") != wanted:
        venv.create(home, clear=True, with_pip=True)
        fill = [python, "-m", "pip", "install", "--quiet", *peer.requires]
        try:
            for command in (fill, [python, "-c", peer.probe]):
                subprocess.run(command, check=True, capture_output=True)
        except subprocess.CalledProcessError as error:
            raise AbsentError(peer.absent or "pip could not install it.") from error
        note.write_text(wanted, encoding="utf-8")
    return python


def version(peer: Peer, python: Path) -> str:
    """Of what is installed in its environment."""
    command = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
    return subprocess.run(
        [python, "-c", command, peer.package], check=True, capture_output=True, text=True
    ).stdout.strip()


def breakdowns(peer: Peer, python: Path, files: list[Path]) -> list[list[dict[str, Any]]] | str:
    """What it answers about each file, or why it cannot."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "answers.json"
        command = [python, "-P", "-m", module(peer), target, *files]
        environment = _environment(Path(folder))
        ran = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, cwd=folder)
        if ran.returncode:
            return (ran.stderr.strip().splitlines() or ["no message"])[-1][:_WORDS]
        answers: list[list[dict[str, Any]]] = json.loads(target.read_text(encoding="utf-8"))
        return answers


def first_table(peer: Peer, python: Path, files: list[Path]) -> dict[str, float] | None:
    """What the first table takes, until its process ends; None if it fails.

    In seconds, CPU seconds, bytes of memory (the most at a time, without mapped files) and bytes of output (printed,
    and in files).
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        traces, output = folder / "traces", folder / "output"
        traces.mkdir()
        output.mkdir()
        copies = [Path(shutil.copy(file, traces / file.name)) for file in files]  # some write beside what they read
        shown = [str(python), "-P", "-m", module(peer), "table", *map(str, copies)]
        command = peer.command(python, copies, output) if peer.command else shown
        ran = run(command, _environment(folder), folder, folder)
        written = [
            file.stat().st_size
            for top in (traces, output)
            for file in top.rglob("*")
            if file.is_file() and file not in copies
        ]
    if ran.code:
        return None
    size = len(ran.output.encode()) + sum(written)
    return {"seconds": ran.seconds, "cpu": ran.cpu, "memory": ran.memory, "output": size}


def fastest(tools: list[tuple[Peer, Path, list[Path]]], turns: int) -> dict[str, dict[str, float]]:
    """The fastest first table of each tool that has one, of several turns in each of which they run one by one."""
    best: dict[str, dict[str, float]] = {}
    for _ in range(turns):
        for peer, python, files in tools:
            ran = first_table(peer, python, files)
            if ran is not None and (peer.id not in best or ran["seconds"] < best[peer.id]["seconds"]):
                best[peer.id] = ran
    return best


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "TRACEKIT_CACHE_DIR": str(folder / "cache"), "COLUMNS": "100"}
