"""Files that a verb writes: atomically, and never over something that cannot be made again."""

import os
import re
from pathlib import Path

from tracekit.cli.streams import tell
from tracekit.errors import OutputError
from tracekit.sanitize import sanitize


def refuse_to_overwrite(path: Path, inputs: list[Path]) -> None:
    """Refuse to write over what is read, and over any other trace or run: none can be made again."""
    if os.path.isdir(path):
        raise OutputError(path, f"it is a folder: name a file in it, as in {path / 'report.txt'}")
    if not os.path.isdir(path.parent):
        raise OutputError(path, "its folder does not exist")
    if os.path.isfile(path):
        if any(os.path.exists(each) and os.path.samefile(each, path) for each in inputs):
            raise OutputError(path, "the report is made from it")
        if _holds_a_trace(path):
            raise OutputError(path, "a trace or a run is there")


def _holds_a_trace(path: Path) -> bool:
    """Whether it begins as a trace or a run does, packed or not."""
    from tracekit.run import is_run
    from tracekit.trace.reading.source import Source

    head = bytearray(1 << 16)
    with Source(path) as source:
        begun = bytes(head[: source.readinto(memoryview(head))])
    return is_run(begun) or _TRACES_BEGINNING.match(begun) is not None


# A name of a report's cannot look so: in JSON its quotes are escaped.
_TRACES_BEGINNING = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*[\[{].*?"(?:schemaVersion|traceEvents|displayTimeUnit|ph)"\s*:', re.DOTALL
)


def write_file(content: str, path: Path) -> None:
    """Put the report there whole; where that fails, an earlier one stays."""
    from tracekit.atomic import reason, replacing

    try:
        if os.path.exists(path) and not os.path.isfile(path):  # /dev/null, a pipe: nothing to put another file for
            path.write_text(content, encoding="utf-8")
        else:
            with replacing(Path(os.path.realpath(path))) as part:  # a link stays one
                part.write_text(content, encoding="utf-8")
    except OSError as error:
        raise OutputError(path, reason(error)) from None
    tell(f"Wrote {sanitize(str(path))}")
