"""Answers from the cache: the table and the sentence, as long as nothing changed that an analysis could look at."""

import hashlib
import json
from pathlib import Path

import pyarrow as pa

from tracekit.analyses import Analysis, Answer
from tracekit.lines_file import lines_path
from tracekit.profile import Profile
from tracekit.trace.storing.cache import version

CODE = (
    *("analyses", "engine", "trace", "compare", "intervals", "kernel_names", "sanitize", "profile", "run", "units"),
    *("lines", "lines_file"),
)


def recall(profile: Profile, asked: Analysis) -> Answer | None:
    """What the analysis answered before, without its rows; None where it was not asked, or something changed."""
    if profile.trace.entry is None or not _ours(asked):
        return None
    held = profile.trace.entry.recall(_name(profile, asked))
    if held is None:
        return None
    try:
        table = pa.ipc.open_stream(held).read_all()
        told = table.schema.metadata
        title, sentence = told[b"title"].decode(), told[b"sentence"].decode()
        worth, status = json.loads(told[b"worth"]), told[b"status"].decode()
    except (pa.ArrowInvalid, OSError, KeyError, TypeError, ValueError):
        return None
    rows = table.replace_schema_metadata(None)
    return Answer(asked.name, title, sentence, rows, worth=worth, status=status, rank=asked.rank)


def remember(profile: Profile, asked: Analysis, answer: Answer) -> None:
    """Keep an answer."""
    if profile.trace.entry is None or not _ours(asked):
        return
    told = {
        "title": answer.title,
        "sentence": answer.sentence,
        "worth": json.dumps(answer.worth),
        "status": answer.status,
    }
    table = answer.table.replace_schema_metadata(told)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.unify_dictionaries())
    profile.trace.entry.remember(_name(profile, asked), bytes(sink.getvalue()))


def _ours(asked: Analysis) -> bool:
    """Whether `version` knows its code."""
    return asked.ask.__module__.startswith("tracekit.")


def _name(profile: Profile, asked: Analysis) -> str:
    return name_of(profile, f"answer-{asked.name}", *CODE)


def name_of(profile: Profile, kind: str, *code: str) -> str:
    """What the cache calls something that this code works out of a variant, of all that it looks at."""
    cold = profile.cold.trace.path if profile.cold is not None else None
    detail = profile.detail_path
    lines = lines_path(detail) if detail is not None else None
    beside = (profile.name, profile.variant, profile.mine, _state(cold), _state(detail), _state(lines))
    told = hashlib.sha256(repr(beside).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{kind}-{version(*code)}-{told}.arrow"


def _state(path: Path | None) -> tuple[str, int, int] | None:
    if path is None:
        return None
    try:
        found = path.stat()
    except OSError:
        return str(path), 0, 0
    return str(path), found.st_size, found.st_mtime_ns
