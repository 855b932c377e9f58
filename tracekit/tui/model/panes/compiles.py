"""What was compiled and why, and where graphs break."""

from collections import Counter
from pathlib import PurePath

import pyarrow as pa

from tracekit.base.names import sanitize
from tracekit.profile import Profile
from tracekit.trace.schema import column
from tracekit.tui.model.content import Content, Pane, Piece, of_all_steps, prose
from tracekit.tui.model.opened import OpenReport
from tracekit.tui.model.panes.timeline import leading_on
from tracekit.tui.model.selection import Selection
from tracekit.tui.model.sheet import Sheet

_TREE = pa.schema(
    [
        column("region", pa.string(), "compiled code, and below it the places where its graph breaks"),
        column("reason", pa.string(), "why, in the compiler's own words"),
        column("breaks", pa.int64(), "compilations whose graph broke there"),
        column("file", pa.string(), "file", role="source"),
        column("line", pa.int64(), "line number in the file", role="source"),
        column("trace", pa.string(), "which recording shows the compilation", role="plumbing"),
        column("event", pa.int64(), "row of that recording's events table", role="plumbing"),
    ]
)


def compiles(opened: OpenReport, selection: Selection) -> Content:
    """The compilations of every variant, with reasons and guards, and a tree of regions with their graph breaks."""
    profiles = opened.profiles_of(selection)
    answers = {p.name: answer for p, answer in opened.report.answers if answer.analysis == "compiles"}
    pieces: list[Piece] = []
    for profile in profiles:
        answer = answers[profile.name]
        if answer.table.num_rows:
            sheet = Sheet("compiles", answer.table, sort=("dur_ns", True), variant=profile.name)
            pieces.append(prose(answer.sentence, title=profile.name if len(profiles) > 1 else ""))
            pieces.append(leading_on(sheet, selection))
    for profile in profiles:
        tree = _tree(profile, answers[profile.name].table)
        if tree.num_rows:
            title = f"{sanitize(profile.name)}: compiled regions, and where their graphs break"
            pieces.append(leading_on(Sheet("regions", tree, title, variant=profile.name), selection))
    if not pieces:
        return Content((prose("Nothing was compiled in the selection."),))
    return Content((*of_all_steps(selection), *pieces))


def _tree(profile: Profile, compilations: pa.Table) -> pa.Table:
    """A region for each first compilation, and below it the lines at which its graph breaks."""
    ledger = profile.variant.ledger if profile.variant is not None else None
    if ledger is None or not ledger.breaks:
        return _TREE.empty_table()
    events = {row["id"]: (row["trace"], row["event"]) for row in compilations.to_pylist()}
    rows: list[tuple[object, ...]] = []
    for region in (compilation for compilation in ledger.compiles if compilation.kind == "first"):
        frame, event = region.id.split("_")[0], events.get(region.id, (None, None))
        broken = [graph_break for graph_break in ledger.breaks if graph_break.compile.split("_")[0] == frame]
        code, _, function = (region.code or region.id).partition(" ")
        file, _, line = code.rpartition(":")
        name, number = sanitize(f"{region.id}  {function or code}"), int(line) if line.isdecimal() else None
        rows.append((name, "" if broken else "one graph", len(broken) or None, file or None, number, *event))
        places = Counter((graph_break.file, graph_break.line, graph_break.reason) for graph_break in broken)
        for k, ((break_file, number, reason), times) in enumerate(places.items()):
            place = f"{'/'.join(PurePath(break_file).parts[-2:])}:{number}" if break_file else "unknown"
            branch = sanitize(f"{'└─' if k == len(places) - 1 else '├─'} {place}")
            rows.append((branch, sanitize(reason), times, break_file, number, *event))
    return pa.Table.from_pylist([dict(zip(_TREE.names, row, strict=True)) for row in rows], schema=_TREE)


COMPILES = Pane(
    "compiles",
    "Compiles",
    "What was compiled, when, for how long and why; reason and guard are shown in full below the table. The tree lists "
    "each compiled function and the lines at which its graph breaks. Enter shows the line.",
    compiles,
    lambda opened: any(
        answer.table.num_rows for _, answer in opened.report.answers if answer.analysis in ("compiles", "graph_breaks")
    ),
    chapters=frozenset({"compiles", "graph_breaks"}),
    key="C",
)
