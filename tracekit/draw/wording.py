"""The words that text and Markdown share."""

from tracekit.report import Grid, Report
from tracekit.run_facts import described
from tracekit.units import thousandths

_TITLES = {
    "wall": "Where the wall time of a step goes",
    "host": "What the host does meanwhile",
}


def title_of(view: str) -> str:
    """The heading of a view."""
    return _TITLES[view]


def uncertainty(numbers: Grid, key: str, name: str) -> str:
    """The interval of a difference in the grid's unit, and whether it is within noise; `–` where none can be given."""
    difference = numbers.differences.get(name)
    if difference is None:
        return "–"
    interval = difference.intervals[key] if key else difference.delta_interval
    if interval is None:
        return "–"
    low, high = (round(end * 1000 / numbers.scale_ns) for end in interval)
    if low == high == 0:
        return ""
    noise = " ~ noise" if difference.noise(key or None) else ""
    return f"{thousandths(low, signed=True)} … {thousandths(high, signed=True)}{noise}"


def note_lines(found: Report) -> list[str]:
    """What must be said beside the figures; a note that holds for every variant is said once."""
    names = [profile.name for profile in found.profiles]
    said: dict[tuple[str, str], list[str]] = {}
    for note in found.notes:
        said.setdefault((note.kind, note.text), []).append(note.variant)
    lines = []
    for (kind, text), of in said.items():
        subject = "" if of == names else f"{', '.join(of)}: "
        lines.append(f"{kind}: {subject}{text}")
    return lines


def run_lines(found: Report) -> list[str]:
    """Under which conditions a run was captured, `label: value`; nothing for bare traces."""
    return [f"{label}: {value}" for label, value in described(found.subject.run)] if found.subject.run else []


def variant_lines(found: Report) -> list[str]:
    """On what each variant's figures rest: how many steps, of which file."""
    lines = []
    for profile in found.profiles:
        counted, total = int(profile.counted.sum()), len(profile.trace.steps)
        if not total:
            lines.append(f"{profile.name}: no steps, {profile.trace.path}")
            continue
        which = "" if counted == total else f" of {total}"
        lines.append(f"{profile.name}: mean of {counted}{which} step{'s' if total != 1 else ''}, {profile.trace.path}")
    return lines
