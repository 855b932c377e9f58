"""The memory of a run in a small file beside it, so that a report of many runs opens none of their recordings.

run.json, run-…/detail.json.gz ──write_summary──▶ memory.json ──read_summary──▶ MemoryUse, without the curves
"""

from pathlib import Path

import msgspec
from msgspec.structs import replace

from tracekit.atomic import replacing
from tracekit.memory.cached import known_use
from tracekit.memory.use import MemoryUse
from tracekit.profile import open_subject
from tracekit.study.store import MEMORY

SCHEMA = "tracekit.memory/1"


class _Summary(msgspec.Struct, frozen=True, kw_only=True):
    schema: str = SCHEMA
    use: MemoryUse


def write_summary(run: Path) -> None:
    """Write the memory use of the run's first variant, even if nothing is known. Raises TracekitError."""
    profiles = open_subject([run]).profiles
    use = (known_use(profiles[0]) if profiles else None) or MemoryUse()
    use = replace(use, devices=[replace(device, curve=[]) for device in use.devices])
    with replacing(run.parent / MEMORY) as part:
        part.write_bytes(msgspec.json.encode(_Summary(use=use)))


def read_summary(folder: Path) -> MemoryUse | None:
    """The memory use in the file; None if there is no file, or another version wrote it."""
    try:
        summary = msgspec.json.decode((folder / MEMORY).read_bytes(), type=_Summary)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return summary.use if summary.schema == SCHEMA else None
