"""What a variant's recording says about memory, kept in the cache, and beside a run in a small file, so that a
report of many runs opens none of their traces.
"""

from pathlib import Path

import msgspec
from msgspec.structs import replace

from tracekit.atomic import replacing
from tracekit.errors import TracekitError
from tracekit.lines.cached import entry_of
from tracekit.lines.ownership import MOST_EVENTS
from tracekit.lines_file import lines_path
from tracekit.memory.use import MemoryUse, memory_use
from tracekit.profile import Profile, open_subject
from tracekit.study.store import MEMORY
from tracekit.trace.storing.cache import file_state
from tracekit.trace.storing.results import recall, remember, result_name

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


def known_use(profile: Profile) -> MemoryUse | None:
    """The variant's memory use; None if no recording was made with `profile_memory`, or it cannot be read."""
    path = profile.detail_path
    if path is None and not (profile.trace.meta.get("profile_memory") and len(profile.trace.ts_ns) <= MOST_EVENTS):
        return None
    entry = entry_of(profile.ownership)
    if entry is not None and (stored := recall(entry, _name(profile), MemoryUse)) is not None:
        return stored
    try:
        recording = profile.recording
    except TracekitError:
        return None
    if not recording.trace.meta.get("profile_memory"):
        return None
    use = memory_use(recording.trace, recording.ownership)
    if entry := entry or entry_of(profile.ownership):  # reading the recording for the first time made an entry
        remember(entry, _name(profile), use)
    return use


def _name(profile: Profile) -> str:
    """It holds everything that the result depends on, wherever it is stored."""
    recordings = [path for path in (profile.trace.path, profile.detail_path) if path is not None]
    states = [file_state(file) for path in recordings for file in (path, lines_path(path))]
    causes = states, sorted(profile.ownership.mine), profile.graphs, profile.trace.infers_steps
    return result_name("memory", __name__, causes=causes)
