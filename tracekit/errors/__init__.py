"""Every failure that a user can cause is a class here, with a sentence that names the cause and the next step.

The command line turns these into exit codes; nothing else catches them wholesale. `asking` has those of what is asked
for, `reading` those of files, traces and runs, `capturing` those of captures and sweeps, `watching` those of
trainings that are watched.
"""

_LONGEST = 200  # characters of a name in a sentence
_STDIN = "-"


class TracekitError(Exception):
    """The base of every failure that a user can cause. `str()` of it is the sentence to show; exit code 1."""


def named(path: object) -> str:
    """A path for a sentence; a very long one is cut in the middle."""
    text = str(path)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}…{text[-_LONGEST // 2 :]}"


def read_from(path: object) -> str:
    """The input for a sentence."""
    return "standard input" if str(path) == _STDIN else named(path)
