"""Answers from the cache: table and sentence, which are valid until something that the analysis reads changes."""

from collections.abc import Callable

from tracekit.analyses import Analysis, Answer
from tracekit.lines_file import lines_path
from tracekit.profile import Profile
from tracekit.trace.storing.cache import file_state
from tracekit.trace.storing.results import recall_table, remember_table, result_name

_FACTS = ("title", "sentence", "worth", "status")


def known_answer(profile: Profile, question: Analysis, work_out: Callable[[], Answer]) -> Answer:
    """The stored answer, without its rows; if there is none, or something has changed, the analysis is asked now.

    The name in the cache depends on the code of tracekit only, so an analysis from outside tracekit is always asked.
    """
    entry = profile.trace.entry
    if entry is None or not question.ask.__module__.startswith("tracekit."):
        return work_out()
    name = name_of(profile, f"answer-{question.name}", __name__, question.ask.__module__)
    known = recall_table(entry, name)
    if known is not None:
        shown, facts = known
        return Answer(question.name, table=shown, rank=question.rank, **facts)
    answer = work_out()
    remember_table(entry, name, answer.table, {fact: getattr(answer, fact) for fact in _FACTS})
    return answer


def name_of(profile: Profile, kind: str, *modules: str) -> str:
    """The name in the cache of a result of these modules; it depends on everything that they read of a variant."""
    cold = profile.cold.trace.path if profile.cold is not None else None
    detail = profile.detail_path
    files = (cold, detail, detail and lines_path(detail))
    beside = (profile.name, profile.variant, profile.mine, *(path and file_state(path) for path in files))
    return result_name(kind, *modules, causes=beside)
