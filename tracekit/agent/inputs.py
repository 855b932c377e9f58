"""Which files may be asked about, and those that are open: nothing outside of the root is read, and the last few inputs
stay in memory, so that a second question about them is quick.
"""

import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from tracekit.agent.answers import BrokenLaw, CannotAnswer, Words
from tracekit.base import disclosure
from tracekit.errors.asking import (
    NotConfidentialError,
    OutsideOfRootError,
    UnknownReferenceError,
)
from tracekit.errors.reading import NoSuchFileError, NothingToReadError
from tracekit.faces.shared.document import as_document
from tracekit.installed import sample_run
from tracekit.profile import Member, Profile, Subject, open_subject
from tracekit.report import Report, report
from tracekit.run import is_run
from tracekit.study import is_study
from tracekit.study.store import CELLS, RECORD
from tracekit.trace.reading.source import STDIN, is_address
from tracekit.vocabulary.lines_file import lines_path
from tracekit.watched.reading import ENDING, TAKEN_TRACE

SAMPLE = "sample"
_MOST_OPEN = 4  # inputs that stay in memory
_MOST_LOOKED_AT = 20_000  # files and folders, where inputs are listed
_IN_NO_LIST = {"node_modules", "__pycache__", "site-packages"}
_TRACES = (".json.gz", ".json.zst", ".trace.json", ".sqlite")  # how the names of traces end


class Found(Struct, frozen=True):
    """A run, a trace or a watch below the root: its path from there, its size, and when it was written, unix s."""

    path: str
    kind: Literal["run", "trace", "watch"]
    bytes: int
    written: float


class Opened(Struct, frozen=True, dict=True):
    """Inputs that were opened, and all that is worked out from them once."""

    report: Report
    mine: tuple[str, ...] = ()

    @cached_property
    def document(self) -> dict[str, Any]:
        """What `tracekit report --format json` says."""
        return as_document(self.report)

    @cached_property
    def variants(self) -> dict[str, str]:
        """The name of each variant by its reference, `v1`; of those without any figures, too."""
        return {f"v{number}": member.name for number, member in enumerate(self.report.subject.members, 1)}

    @cached_property
    def references(self) -> dict[str, str]:
        """The reference of each variant by its name."""
        return {name: reference for reference, name in self.variants.items()}

    def reference(self, variant: str | None) -> str | None:
        """The reference for a variant that is given by its reference or its name. Raises UnknownReferenceError."""
        if variant is None or variant in self.variants:
            return variant
        if variant not in self.references:
            raise UnknownReferenceError(variant, f"the variants are {', '.join(self.variants)}")
        return self.references[variant]

    def member(self, reference: str) -> Member:
        """The variant of that reference. Raises UnknownReferenceError."""
        name = self.variants.get(reference)
        if name is None:
            raise UnknownReferenceError(reference, f"the variants are {', '.join(self.variants)}")
        return next(member for member in self.report.subject.members if member.name == name)

    def profile(self, reference: str) -> Profile:
        """The variant of that reference, which has a trace. Raises UnknownReferenceError."""
        member = self.member(reference)
        if not isinstance(member, Profile):
            raise UnknownReferenceError(reference, "this variant has no trace")
        return member

    def documents(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """What the document says of each variant, with the variant's reference."""
        for variant in self.document["variants"]:
            yield self.references[variant["name"]], variant

    def findings(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """What the document says of each finding, with its reference, `v1.f1`."""
        numbers: dict[str, int] = {}
        for finding in self.document["findings"]:
            variant = self.references[finding["variant"]]
            numbers[variant] = numbers.get(variant, 0) + 1
            yield f"{variant}.f{numbers[variant]}", finding

    def limits(self, only: str | None = None) -> dict[str, Any]:
        """What cannot be answered, and which laws are broken, as every answer has it."""
        chosen = [(reference, variant) for reference, variant in self.documents() if only in (None, reference)]
        return {
            "cannot_answer": [
                CannotAnswer(reference, view, Words(text=reason))
                for reference, variant in chosen
                for view, reason in variant["cannot_answer"].items()
            ]
            + [
                CannotAnswer(reference, "trace", Words(text=variant["reason"]))
                for reference, variant in chosen
                if variant["trace"] is None and variant["reason"]
            ],
            "broken_laws": [
                BrokenLaw(reference, breach["id"], breach["severity"], breach["count"], Words(text=breach["message"]))
                for reference, variant in chosen
                for breach in variant["health"]
            ],
        }


class Workplace:
    """The root, below which everything lies that may be asked about, and what is open."""

    def __init__(self, root: Path, mine: Sequence[str] = ()) -> None:
        self.root = root.resolve()
        self._mine = tuple(mine)
        self._opened: OrderedDict[tuple[object, ...], Opened] = OrderedDict()

    def path(self, text: str) -> Path:
        """The path that an input names. Raises OutsideOfRootError and NoSuchFileError."""
        if text == SAMPLE and not (self.root / text).exists():
            return sample_run()
        if text == STDIN or is_address(Path(text)) or "\0" in text:
            raise OutsideOfRootError(text, self.root)
        try:
            path = (self.root / text).resolve()
        except (RuntimeError, ValueError):  # a link to itself, or letters that no name can have
            raise NothingToReadError(text) from None
        if not path.is_relative_to(self.root):
            raise OutsideOfRootError(text, self.root)
        if not path.exists():
            raise NoSuchFileError(text)
        if not (path.is_file() or path.is_dir()):
            raise NothingToReadError(text)
        return path

    def open(self, inputs: Sequence[str]) -> Opened:
        """The inputs side by side; those that are open already are not read again unless they changed. Raises
        TracekitError."""
        paths = [self.path(text) for text in inputs]
        key = tuple(part for path in paths for part in _state(path))
        if key not in self._opened:
            for path in paths:
                self._check_folder(path)
            subject = open_subject(paths, mine=self._mine)
            self._check_read(subject)
            self._opened[key] = Opened(report(subject))
            while len(self._opened) > _MOST_OPEN:
                self._opened.popitem(last=False)
        self._opened.move_to_end(key)
        return self._opened[key]

    def found(self) -> list[Found]:
        """The runs, traces and watches below the root, the newest first; what lies beside a run or in the folder of a
        watch belongs to it."""
        found, looked_at = [], 0
        for folder, folders, files in os.walk(self.root):
            folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _IN_NO_LIST)
            looked_at += len(folders) + len(files)
            if (watch := self._watch_in(folder, files)) is not None:
                found.append(watch)
            named = [Path(folder, name) for name in sorted(files) if name.endswith((".json", *_TRACES))]
            named = [path for path in named if watch is None or not TAKEN_TRACE.fullmatch(path.name)]
            paths = [path for path in named if os.path.isfile(path) and path.resolve().is_relative_to(self.root)]
            runs = [path for path in paths if path.suffix == ".json" and is_run(path)]
            if runs:
                folders[:] = [name for name in folders if not name.startswith(tuple(run.stem for run in runs))]
            for path in runs or [path for path in paths if path.name.endswith(_TRACES)]:
                state = path.stat()
                found.append(
                    Found(str(path.relative_to(self.root)), "run" if runs else "trace", state.st_size, state.st_mtime)
                )
            if looked_at > _MOST_LOOKED_AT:
                break
        return sorted(found, key=lambda entry: (-entry.written, entry.path))

    def _watch_in(self, folder: str, files: Sequence[str]) -> Found | None:
        """The watch whose records these are, if some are any."""
        records = [Path(folder, name).lstat() for name in files if name.endswith(ENDING)]
        if not records:
            return None
        last = max(state.st_mtime for state in records)
        return Found(os.path.relpath(folder, self.root), "watch", sum(state.st_size for state in records), last)

    def _check_folder(self, path: Path) -> None:
        """Refuse a folder in which a link leads out of the root, and any study where names are to be hidden."""
        if not path.is_dir():
            return
        if not is_study(path):
            for entry in path.iterdir():
                if entry.name.endswith((".json", *_TRACES, ENDING)):
                    self._check_inside(entry)
            return
        if disclosure.current() is not None:
            raise NotConfidentialError("a study", "give the run.json of one of its cells")
        for folder, folders, files in os.walk(path):
            for name in (*folders, *files):
                self._check_inside(Path(folder, name))

    def _check_read(self, subject: Subject) -> None:
        """Refuse what was found by a link that leads out of the root."""
        loaders = {profile.loader_folder for profile in subject.profiles}
        for profile in subject.profiles:
            for capture in profile.captures:
                self._check_inside(capture.path)
                self._check_inside(lines_path(capture.path))
        if subject.watch is not None:
            for record in (subject.watch.shown, *subject.watch.others):
                self._check_inside(record.path)
                loaders.add(record.loader_folder)
        for folder in loaders:
            if folder is not None and folder.is_dir():
                for entry in (folder, *folder.iterdir()):
                    self._check_inside(entry)

    def _check_inside(self, path: Path) -> None:
        real = path.resolve()
        if path.exists() and not any(map(real.is_relative_to, (self.root, sample_run().resolve().parent))):
            raise OutsideOfRootError(path, self.root)


def _state(path: Path) -> Iterator[object]:
    """What changes when a file or folder is written; of a study, what its cells write, too."""
    entries = [path, *(sorted(path.iterdir()) if path.is_dir() else ())]
    if is_study(path):
        entries += sorted((path / CELLS).glob(f"*/{RECORD}"))
    for entry in entries:
        state = entry.lstat()
        yield (str(entry), state.st_mtime_ns, state.st_size)
