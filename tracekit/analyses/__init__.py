"""One question per file. An analysis reads a profile's columns and answers with a sentence and a table.

To add one, write a file here with a function under `@analysis(...)`: every face finds it. One that lives elsewhere
registers itself the same way when it is imported. `event_rows` has what several of them have in common.
"""

import pkgutil
from collections.abc import Callable
from importlib import import_module
from typing import Any, Literal

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from tracekit.analyses.event_rows import EventRows
from tracekit.base.registry import Registry, import_plug_ins
from tracekit.profile import Profile
from tracekit.profile.cached import name_of
from tracekit.profile.recording_words import in_words
from tracekit.trace.storing.cache import recall_table, remember_table

# `absent`: the question does not arise in this variant; `unanswered`: what was recorded cannot answer it.
Status = Literal["answered", "absent", "unanswered"]
_FACTS = ("title", "sentence", "worth", "status")


class Answer(Struct, frozen=True):
    """The answer of an analysis about one variant.

    `table` is what faces show; the metadata of its fields says unit (`ns`, `B`, `share`, or nothing), meaning and role.
    `rows`, where there is more to keep, has one row per event behind it: exports carry it. `worth` is the share of a
    step that the answer is about, None where that is unknown: it orders the report, and a table of little worth
    is shown only with --full.
    """

    analysis: str
    title: str
    sentence: str
    table: pa.Table
    rows: EventRows | None = None
    worth: float | None = None
    status: Status = "answered"
    rank: int = 1000  # as registered: it orders answers of one worth


Ask = Callable[[Profile], Answer]


class Analysis(Struct, frozen=True):
    """A registered question; `rank` orders those of one worth."""

    name: str
    rank: int
    ask: Ask


_registered = Registry[Analysis]("analyses")


def analysis(name: str, rank: int = 1000) -> Callable[[Ask], Ask]:
    """Register the function as the analysis of that name."""

    def register(ask: Ask) -> Ask:
        _registered.register(name, Analysis(name, rank, ask), ask)
        return ask

    return register


def unregister(name: str) -> None:
    """Remove the analysis of that name."""
    _registered.unregister(name)


def analyses() -> list[Analysis]:
    """All analyses by rank; faces show answers of greater worth first."""
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    import_plug_ins("tracekit.questions")
    return sorted(_registered.values(), key=lambda entry: (entry.rank, entry.name))


def answers(profile: Profile) -> list[Answer]:
    """The answers of every analysis about one variant."""
    return [_answer(entry, profile) for entry in analyses()]


def _answer(entry: Analysis, profile: Profile) -> Answer:
    answer = entry.ask(profile)
    answer = replace(answer, rank=entry.rank, sentence=in_words(profile, answer.sentence))
    if not profile.trace.cut_short:
        return answer
    return replace(answer, sentence=f"Only part of the file could be read. {answer.sentence}")


def summaries(profile: Profile) -> list[Answer]:
    """Every analysis without the rows behind it; from the cache, where it has them."""
    return [known_answer(profile, entry) for entry in analyses()]


def summary(profile: Profile, name: str) -> Answer:
    """One of the summaries."""
    return next(known_answer(profile, entry) for entry in analyses() if entry.name == name)


def share_of_step(profile: Profile, *buckets: str) -> float:
    """The share of a counted step that these buckets take: of its wall time, or of its host time if that is unknown."""
    mean = profile.mean
    if mean is None or not mean.step_ns:
        return 0.0
    return sum(mean.parts.get(key, 0.0) for key in buckets) / mean.step_ns


def of_ledger(profile: Profile) -> Status:
    """The status of a question that only the ledger of a compiled variant can answer."""
    if profile.variant is None:
        return "unanswered"
    return "answered" if profile.variant.requested.compile else "absent"


def table(schema: pa.Schema, columns: dict[str, Any]) -> pa.Table:
    """A table of this schema from arrays or lists by name, of which there may be more; the schema's comments and units
    stay with it."""
    arrays = []
    for field in schema:
        values = columns[field.name]
        values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        values = values if isinstance(values, pa.Array) else pa.array(values, field.type)
        arrays.append(values if values.type == field.type else values.cast(field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def known_answer(profile: Profile, question: Analysis) -> Answer:
    """The stored answer, without its rows; if there is none, or something has changed, the analysis is asked now.

    The name in the cache depends on the code of tracekit only, so an analysis from outside tracekit is always asked.
    """
    entry = profile.trace.entry
    if entry is None or not question.ask.__module__.startswith("tracekit."):
        return _answer(question, profile)
    name = name_of(profile, f"answer-{question.name}", __name__, question.ask.__module__)
    stored = recall_table(entry, name)
    if stored is not None:
        table, facts = stored
        return Answer(question.name, table=table, rank=question.rank, **facts)
    answer = _answer(question, profile)
    remember_table(entry, name, answer.table, {fact: getattr(answer, fact) for fact in _FACTS})
    return answer
