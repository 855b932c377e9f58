"""Under which name is a result cached, so that it is reused until something it was computed from changes?"""

from tracekit.lines_file import lines_path
from tracekit.profile.profile import Profile
from tracekit.trace.storing.cache import file_state
from tracekit.trace.storing.results import result_name


def name_of(profile: Profile, kind: str, *modules: str) -> str:
    """The name in the cache of a result of these modules; it depends on everything that they read of a variant."""
    cold = profile.cold.trace.path if profile.cold is not None else None
    detail = profile.detail_path
    files = (cold, detail, detail and lines_path(detail))
    beside = (
        profile.name,
        profile.variant,
        profile.mine,
        profile.calibration,
        *(path and file_state(path) for path in files),
    )
    return result_name(kind, *modules, causes=beside)
