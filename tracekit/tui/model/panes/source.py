"""A file of the user's around the selected line, with what each line costs in every variant."""

import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath

import pyarrow as pa

from tracekit.report.owner_costs import SourceCosts, source_costs, sources, steps_of
from tracekit.trace.schema import column
from tracekit.tui.model.content import Code, Content, Pane, Place, prose
from tracekit.tui.model.opened import OpenReport, has_gpu
from tracekit.tui.model.panes.names import kernels, operators
from tracekit.tui.model.selection import NO_LINE, Selection
from tracekit.tui.model.sheet import Sheet, table_from

_MOST_BYTES = 4 << 20  # of a file that is read because it was not captured
_HEAT, _EIGHTHS = 8, ("", *"▏▎▍▌▋▊▉")  # cells of the longest bar, and what ends one
_FUSED = ("+", "#8854d0")
_NO_FILE = "{} is neither in the recording nor found on this machine. Start tracekit in the folder that it is in."


def source(opened: OpenReport, selection: Selection) -> Content:
    """The file of the selected line, or else that of the costliest line; without the file, what the line runs."""
    line_key = selection.of("line")
    place = Place(*line_key) if line_key not in (None, NO_LINE) else _costliest(opened)
    if place is None:
        return Content((prose("No line is selected, and no recording shows which lines cost most."),))
    code = code_at(opened, place, selection)
    if code is None:
        query = kernels if has_gpu(opened.report.profiles) else operators
        behind = query(opened, selection.to_line(place.file, place.line, None))
        return Content((prose(_NO_FILE.format(place.file)), *behind.pieces))
    return Content((code,), (0, max(place.line - 1, 0)))


def code_at(opened: OpenReport, place: Place, selection: Selection) -> Code | None:
    """The file around a line, as captured or else as it is on this machine; None if it is in neither."""
    file = matching(sources(opened.owners), place.file)
    if file is not None:
        return Code(_sheet(source_costs(opened.owners_over(selection), file), opened, selection), file, place.line)
    path = on_this_machine(opened, place.file)
    text = _text_of(path) if path is not None else None
    if text is None:
        return None
    known_files = {line.file for variant in opened.owners for owner in variant.means.owners for line in owner.lines}
    costs = source_costs(opened.owners_over(selection), matching(known_files, place.file) or place.file, text)
    return Code(
        _sheet(costs, opened, selection, " as it is now: the recording does not contain it"), place.file, place.line
    )


def matching(files: Iterable[str], name: str) -> str | None:
    """The file with that path, or else the only one whose path ends with the name, or that the name ends with."""
    paths = [*files]
    if name in paths:
        return name
    fitting = [file for file in paths if _ends_like(PurePath(file).parts, PurePath(name).parts)]
    return fitting[0] if len(fitting) == 1 else None


def _ends_like(parts: tuple[str, ...], other_parts: tuple[str, ...]) -> bool:
    shared = min(len(parts), len(other_parts))
    return shared > 0 and parts[-shared:] == other_parts[-shared:]


def on_this_machine(opened: OpenReport, file: str) -> Path | None:
    """Where an editor finds the file: as named, beside what was run, or by its last folders below the current one."""
    beside = [Path(run.script).parent for run in opened.report.subject.runs.values()]
    parts = PurePath(file).parts
    tries = [Path(file), *(folder / file for folder in beside), *(Path(*parts[k:]) for k in range(1, len(parts)))]
    return next((path for path in tries if path.is_file()), None)


def _text_of(path: Path) -> str | None:
    try:
        return None if os.path.getsize(path) > _MOST_BYTES else path.read_text("utf-8", "replace")
    except OSError:
        return None


def _sheet(costs: SourceCosts, opened: OpenReport, selection: Selection, remark: str = "") -> Sheet:
    """A row for each line of the file."""
    lines = [line.expandtabs(4) for line in costs.text.splitlines()]
    numbers = [*range(1, len(lines) + 1)]
    names = [owner.name for owner in opened.owners]
    alone = {name: [costs.alone[name].get(number, 0.0) for number in numbers] for name in names}
    fused = costs.fused_by_line()
    steps = steps_of(opened.owners_over(selection))
    shares = [max((alone[n][k] / steps[n] for n in names if steps[n]), default=0.0) for k in range(len(lines))]
    largest_share = max(shares, default=0.0) or 1.0
    variant_phrase = "" if len(names) == 1 else ", in the variant in which it is largest"
    meaning = "what the line alone costs per counted step"
    columns: list[tuple[pa.Field, Sequence[object]]] = [
        (column(f"{name}_ns", pa.float64(), meaning, "ns", title=name), alone[name]) for name in names
    ]
    meaning = f"share of a step that the line alone costs{variant_phrase}"
    columns.append((column("share", pa.float64(), meaning, "share"), shares))
    meaning = "the same as a bar, scaled to the costliest line"
    bars = [heat(share / largest_share) for share in shares]
    columns.append((column("heat", pa.string(), meaning, role="bar"), bars))
    columns.append((column("line", pa.int64(), "number of the line", role="identity"), numbers))
    columns.append((column("text", pa.string(), "", role="code"), lines))
    for name in names:
        meaning = f"cost in {name} of kernels that were fused from this line and others; never split between them"
        title = f"{name} with others"
        kind = column(f"{title}_ns", pa.float64(), meaning, "ns", role="detail", title=title)
        columns.append((kind, [fused[name].get(number) for number in numbers]))
    columns.append((column("file", pa.string(), "", role="source"), [costs.file] * len(lines)))
    behind = "kernels" if has_gpu(opened.report.profiles) else "operators"
    return Sheet(
        "source",
        table_from(columns),
        f"{costs.file}{remark}",
        lambda row: selection.to_line(costs.file, row + 1, behind),
        sort_keys={"heat": "share"},
        marks={number - 1: _FUSED for name in names for number in fused[name]},
        variants=(*names,),
    )


def heat(part: float) -> str:
    """A bar of that part of its full length; a line that costs anything has one."""
    eighths = math.ceil(part * _HEAT * 8)
    return f"{'█' * (eighths // 8)}{_EIGHTHS[eighths % 8]}"


def _costliest(opened: OpenReport) -> Place | None:
    """The costliest of the lines whose file was captured."""
    files, total = sources(opened.owners), dict[tuple[str, int], float]()
    for variant in opened.owners:
        for lines, ns in variant.by(lambda owner: owner.lines).items():
            for line in lines:
                if line.file in files:
                    total[line.file, line.line] = total.get((line.file, line.line), 0.0) + ns
    return Place(*max(total, key=lambda key: total[key])) if total else None


SOURCE = Pane(
    "source",
    "Source",
    "Your file, with what each line costs by itself in every variant, and its share of a step; + marks lines that "
    "were fused with others: their common cost is shown below the table and never split. Enter shows the kernels or "
    "operators of a line, e opens it in $EDITOR.",
    source,
    lambda opened: bool(sources(opened.owners)),
    key="S",
)
