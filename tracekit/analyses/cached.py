"""Answers from the cache: the table and the sentence, valid as long as nothing that the analysis reads has changed."""

import json

import pyarrow as pa

from tracekit.analyses import Analysis, Answer
from tracekit.lines_file import lines_path
from tracekit.profile import Profile
from tracekit.trace.storing.cache import file_state
from tracekit.trace.storing.results import result_name


def recall(profile: Profile, question: Analysis) -> Answer | None:
    """What the analysis answered before, without its rows; None where it never ran, or something has changed."""
    if profile.trace.entry is None or not _ours(question):
        return None
    content = profile.trace.entry.recall(_name(profile, question))
    if content is None:
        return None
    try:
        table = pa.ipc.open_stream(content).read_all()
        metadata = table.schema.metadata
        title, sentence = metadata[b"title"].decode(), metadata[b"sentence"].decode()
        worth, status = json.loads(metadata[b"worth"]), metadata[b"status"].decode()
    except (pa.ArrowInvalid, OSError, KeyError, TypeError, ValueError):
        return None
    rows = table.replace_schema_metadata(None)
    return Answer(question.name, title, sentence, rows, worth=worth, status=status, rank=question.rank)


def remember(profile: Profile, question: Analysis, answer: Answer) -> None:
    """Store an answer."""
    if profile.trace.entry is None or not _ours(question):
        return
    metadata = {
        "title": answer.title,
        "sentence": answer.sentence,
        "worth": json.dumps(answer.worth),
        "status": answer.status,
    }
    table = answer.table.replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.unify_dictionaries())
    profile.trace.entry.remember(_name(profile, question), bytes(sink.getvalue()))


def _ours(question: Analysis) -> bool:
    """Whether its code is tracekit's, so that changing the code changes the name of the answer."""
    return question.ask.__module__.startswith("tracekit.")


def _name(profile: Profile, question: Analysis) -> str:
    return name_of(profile, f"answer-{question.name}", __name__, question.ask.__module__)


def name_of(profile: Profile, kind: str, *modules: str) -> str:
    """The name in the cache of a result of these modules; it depends on everything that they read of a variant."""
    cold = profile.cold.trace.path if profile.cold is not None else None
    detail = profile.detail_path
    files = (cold, detail, detail and lines_path(detail))
    beside = (profile.name, profile.variant, profile.mine, *(path and file_state(path) for path in files))
    return result_name(kind, *modules, causes=beside)
