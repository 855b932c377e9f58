"""Answers from the cache: table and sentence, which are valid until something that the analysis reads changes."""

from collections.abc import Callable

from tracekit.analyses import Analysis, Answer
from tracekit.profile import Profile
from tracekit.profile.cache_names import name_of
from tracekit.trace.storing.results import recall_table, remember_table

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
