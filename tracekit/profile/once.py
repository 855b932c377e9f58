"""What several questions ask of a profile is worked out once."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from tracekit.profile.profile import Profile

Answer = TypeVar("Answer")


def once(work_out: Callable[[Profile], Answer]) -> Callable[[Profile], Answer]:
    """The function, which for each profile works only the first time."""

    @wraps(work_out)
    def ask(profile: Profile) -> Answer:
        known: dict[Any, Any] = profile.__dict__.setdefault("known_once", {})
        if work_out not in known:
            known[work_out] = work_out(profile)
        answer: Answer = known[work_out]
        return answer

    return ask
