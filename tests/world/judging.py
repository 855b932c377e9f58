"""Damages recordings, and holds their reports against the law: `python -m tests.world.damage` prints the results."""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from multiprocessing import get_context
from pathlib import Path

from tests.world import damage
from tests.world.damage import KINDS, File
from tests.world.law import SPREAD, broken, grave
from tests.world.truth import Told, Truth, truth_of
from tests.world.worlds import world
from tracekit.errors import TracekitError
from tracekit.profile import open_subject
from tracekit.report import report

# What recorders that write less look like: these findings become time of the host, of which nobody knows more.
_VAGUE = {
    "frames": ("garbage_collection", "preprocessing", "cpu_compute", "operator_loop", "optimizer_loop", "zero_grad"),
    "loader_events": ("dataloader_bound",),
    "operators": ("operator_loop", "optimizer_loop", "zero_grad", "cpu_compute", "allocator", *SPREAD),
}
# What a file still shows of a cause by another name: the loader that works in the loop itself prepares data there, and
# the products of attention are products like others where no operator says what they are for.
_RENAMED = {
    "loader_events": {"preprocessing": "dataloader_bound"},
    "operators": {"unaligned_products": "unfused_attention"},
}


@dataclass(frozen=True)
class Judged:
    """One damaged recording: what was claimed beyond the truth, and whether anything was told at all."""

    seed: int
    kinds: tuple[str, ...]
    claims: tuple[str, ...]
    refused: bool = False  # by an error with a sentence
    doubted: bool = False  # its health says so, of a figure or of all
    withheld: bool = False  # no finding is left, although there was one
    error: str = field(default="", compare=False)

    @property
    def kept(self) -> bool:
        return not self.claims and not self.error


def judge(files: list[Path], truth: Truth, names: tuple[str, ...], seed: int, folder: Path) -> Judged | None:
    """Damage the files, of which each is a rank, into a folder, and compare; None if nothing can be damaged."""
    path = damaged_files(files, names, seed, folder)
    return None if path is None else judged_file(path, truth, names, seed)


def damaged_files(files: list[Path], names: tuple[str, ...], seed: int, folder: Path) -> Path | None:
    """The damaged file, or the folder of those of the ranks; None, and nothing written, if one cannot be damaged."""
    draw = random.Random(f"damage {seed} {' '.join(names)}")
    made = []
    for path in files:
        file = damage.damaged(File.read(path), names, draw)
        if file is None:
            return None
        made.append((path.name.removesuffix(".gz"), file))
    written = [file.write(folder / name) for name, file in made]
    return folder if len(written) > 1 else written[0]


def judged_file(path: Path, truth: Truth, names: tuple[str, ...], seed: int) -> Judged:
    """Compare the report of a damaged file, or of a folder of them, with the truth."""
    lost = [each for name in names for each in _VAGUE.get(name, ())]
    renamed = {told: true for name in names for told, true in _RENAMED.get(name, {}).items()}
    try:
        told = Told(report(open_subject([path])))
        claims = broken(told, truth, lost, renamed)
    except TracekitError:
        return Judged(seed, names, (), refused=True)
    except Exception as error:  # whatever it is, it is none that a reader may see
        return Judged(seed, names, (f"{type(error).__name__}: {error}",))
    doubted = any(grave(variant) for variant in told.variants)
    return Judged(seed, names, tuple(claims), False, doubted, bool(truth.findings) and not told.document["findings"])


TRIES = 60  # worlds, until one has what a kind damages


def case(number: int) -> tuple[int, tuple[str, ...]]:
    """The seed of the world and the kinds of damage of a numbered case; the kinds take turns, singly and in pairs."""
    draw = random.Random(f"case {number}")
    first = [*KINDS][number % len(KINDS)]
    pair = (number // len(KINDS)) % 2 == 1
    second = (draw.choice([name for name in KINDS if name != first]),) if pair else ()
    return number, (first, *second)


def judged_case(number: int, keep: Path | None = None) -> Judged:
    """Damage the first world of the case to which its kinds apply."""
    first, names = case(number)
    for seed in count(first, 1_000):
        if seed - first >= 1_000 * TRIES:
            return Judged(seed, (), ())
        with tempfile.TemporaryDirectory() as folder:
            made = world(seed)
            whole, broke = Path(folder) / "whole", keep or Path(folder) / "damaged"
            path = made.write(whole)
            broke.mkdir(exist_ok=True, parents=True)
            files = sorted(path.iterdir()) if path.is_dir() else [path]
            if (damaged := damaged_files(files, names, seed, broke)) is not None:
                return judged_file(damaged, truth_of(path, made), names, seed)
    raise AssertionError


def judged(numbers: Iterable[int], workers: int) -> list[Judged]:
    """The cases of these numbers, from fresh processes."""
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        return [*pool.map(judged_case, numbers, chunksize=4)]


def judged_trace(path: Path) -> list[Judged]:
    """A real trace with every kind of damage that applies to it, one at a time."""
    truth, found = truth_of(path), []
    for name in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            found.append(judge([path], truth, (name,), 0, Path(folder)))
    return [each for each in found if each is not None]


def judged_traces(paths: Iterable[Path], workers: int) -> dict[str, list[Judged]]:
    """These traces with every kind of damage, from fresh processes."""
    ordered = sorted(paths, key=lambda path: -path.stat().st_size)
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        return {path.name: found for path, found in zip(ordered, pool.map(judged_trace, ordered), strict=True)}


def table(found: Iterable[Judged]) -> dict[str, dict[str, int]]:
    """For each kind, by itself or one of two: how many cases, and how many keep the law."""
    rows: dict[str, dict[str, int]] = {}
    for each in found:
        for name in (*each.kinds, "all"):
            row = rows.setdefault(name, dict.fromkeys(("cases", "kept", "refused", "doubted", "withheld"), 0))
            row["cases"] += 1
            for column in ("kept", "refused", "doubted", "withheld"):
                row[column] += getattr(each, column)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="How often is the law of damage kept, by kind of damage?")
    parser.add_argument("--worlds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first case")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kind", default="", help="only cases with this kind of damage")
    parser.add_argument("--missed", action="store_true", help="show what is claimed beyond the truth")
    parser.add_argument("--floors", action="store_true", help="print damage.toml for these cases")
    parser.add_argument("--write", type=Path, help="a folder for the damaged traces of the cases that were missed")
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.worlds)
    chosen = [number for number in numbers if not options.kind or options.kind in case(number)[1]]
    found = dict(zip(chosen, judged(chosen, options.workers), strict=True))
    rows = table(found.values())
    if options.floors:
        print("\n".join(f"{name} = {100 * row['kept'] // row['cases']}" for name, row in sorted(rows.items())))
        return
    print(f"{'':28}{'cases':>8}{'kept':>8}{'':>6}{'refused':>9}{'doubted':>9}{'withheld':>10}")
    for name, row in sorted(rows.items(), key=lambda item: item[1]["kept"] / item[1]["cases"]):
        share = f"{row['kept'] / row['cases']:.0%}"
        columns = f"{row['refused']:>9}{row['doubted']:>9}{row['withheld']:>10}"
        print(f"{name:28}{row['cases']:>8}{row['kept']:>8}{share:>6}{columns}")
    for number, each in found.items():
        if each.kept:
            continue
        if options.missed:
            print(f"\ncase {number}: {' + '.join(each.kinds)} (world {each.seed})")
            print("\n".join(f"  {claim}" for claim in each.claims))
        if options.write:
            judged_case(number, options.write / str(number))
