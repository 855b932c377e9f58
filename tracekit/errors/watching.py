"""Failures of asking a training that is watched."""

from collections.abc import Sequence

from tracekit.errors import TracekitError


class NotWatchedError(TracekitError):
    """No training of this user is watched in that process."""

    def __init__(self, process: int, why: str, others: Sequence[str]) -> None:
        advice = f"Watched are: {', '.join(others)}." if others else "No training of yours is watched now."
        super().__init__(f"process {process} {why}. {advice}")


class NoTraceTakenError(TracekitError):
    """A training that is watched was asked for a trace, and did not write one."""

    def __init__(self, process: int, why: str) -> None:
        super().__init__(f"process {process} wrote no trace: {why}.")
