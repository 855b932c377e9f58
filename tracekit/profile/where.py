"""On which line of yours does an event happen, or is time spent? Every table and every rule asks here.

- `line_table` is for tables: the lines of many events, as columns; `line_cells` is the same for known lines.
- `lines_of_event`, `lines_of_time` and `lines_of_buckets` are for rules (`tracekit.findings.culprits`): the lines of
  one event, those that own most of a period of time, and those that own some buckets.

The owner decides (docs/owners.md). Only tables say more: where no line of yours owns an event of a bare trace with
stacks, they show the innermost function that may be yours. Owners are stricter: without `--mine`, code in a package
counts as a library's.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from tracekit.base.intervals import Ints
from tracekit.lines.owners import Group, SourceLine, functions_of, short
from tracekit.lines.ownership import MOST_EVENTS
from tracekit.profile.profile import Profile
from tracekit.trace import Trace
from tracekit.trace.rows import user_frames
from tracekit.trace.schema import LABEL, codes, column
from tracekit.vocabulary.code_owner import plain_function, profiled
from tracekit.vocabulary.lines_file import lines_path

LINE_COLUMNS = pa.schema(
    [
        column(
            "where",
            LABEL,
            "your line, or your lines if they were fused; your function where only that is known",
            role="place",
        ),
        column("file", LABEL, "your file; null for fused lines", role="source"),
        column(
            "line",
            pa.int64(),
            "line number in the file; null for fused lines, and where only the function is known",
            role="source",
        ),
        column("function", LABEL, "your function", role="source"),
    ]
)
MODULE = column("module", LABEL, "enclosing modules, outermost first", role="source")
LineCells = tuple[str | None, str | None, int | None, str | None]  # in the order of LINE_COLUMNS


def line_table(profile: Profile, rows: Ints) -> pa.Table:
    """A row for each of these rows of the events table of `profile.trace`: `LINE_COLUMNS` and `MODULE`; nulls for −1.

    The event's owner decides, as in `tracekit lines`: the line that runs on its thread when it starts; for a backward
    node the line of its forward operator; for GPU work the line of its launch, or the lines that were fused into it.
    Where a bare trace with stacks has no such line, and throughout a trace that is too long for owners to be worked
    out, it is the function around the event, or around its launch. Nulls elsewhere, and outside the steps.
    """
    trace = profile.trace
    is_bare = trace.has_stacks and not lines_path(trace.path).is_file()
    groups: list[Group]
    if is_bare and len(trace.ts_ns) > MOST_EVENTS:
        groups, group_of, modules = [()], np.zeros(len(rows), np.int64), pa.nulls(len(rows), LABEL)
    else:
        # The lines that own events, each once; which of them owns each event; the modules around it.
        owners = profile.ownership.owners
        numbers, inverse = np.unique(profile.ownership.of_events(rows), return_inverse=True)
        owner_of = [owners.rows[owner] for owner in numbers.tolist()]
        position = {group: place for place, group in enumerate(dict.fromkeys(owner.group for owner in owner_of))}
        groups = [owners.groups[group] for group in position]
        group_of = np.array([position[owner.group] for owner in owner_of], np.int64)[inverse.reshape(-1)]
        chains = [" · ".join(owners.modules[owner.module]) or None for owner in owner_of]
        modules = _labels(chains, inverse.reshape(-1))
    if is_bare:
        unowned = np.array([not group for group in groups], bool)[group_of]
        functions, which_function = _by_frame(trace, rows[unowned])
        group_of[unowned] = len(groups) + which_function
        groups = [*groups, *functions]
    cells = [line_cells(group) for group in groups]
    places, file, line, function = zip(*cells, strict=True) if cells else ((), (), (), ())
    has_line = np.array([number is not None for number in line], bool)
    line_numbers = np.array([number or 0 for number in line], np.int64)
    lines = pa.array(line_numbers[group_of], mask=~has_line[group_of])
    columns = [_labels(places, group_of), _labels(file, group_of), lines, _labels(function, group_of)]
    return pa.Table.from_arrays(columns, schema=LINE_COLUMNS).append_column(MODULE, modules)


def distinct_lines(table: pa.Table) -> tuple[Ints, list[dict[str, Any]]]:
    """Each line of such a table once, as `LINE_COLUMNS`, and for every row of the table the number of its line."""
    _, first, line_of = np.unique(codes(table["where"]), return_index=True, return_inverse=True)
    lines = [{name: table[name][row].as_py() for name in LINE_COLUMNS.names} for row in first.tolist()]
    return line_of.reshape(-1), lines


def lines_of_event(profile: Profile, row: int) -> tuple[Group, tuple[str, ...]]:
    """The lines and the modules, outermost first, that own an event of `profile.trace`; empty if none is known."""
    owners = profile.ownership.owners
    owner = int(profile.ownership.of_events(np.array([row]))[0])
    return owners.group_of(owner), owners.modules[owners.rows[owner].module]


def lines_of_buckets(profile: Profile, *buckets: str) -> list[tuple[Group, float]]:
    """The lines that own these buckets of the wall time, those with most first, and their shares; those known."""
    by_line = profile.owner_means.by("wall", lambda owner: owner.lines, lambda mean: mean.bucket in buckets)
    total = sum(by_line.values())
    shares = [(lines, time / total) for lines, time in by_line.items() if lines and time]
    return sorted(shares, key=lambda entry: -entry[1])


def lines_of_time(profile: Profile, view: str, start: int, end: int) -> Group:
    """The lines that own most of the time from `start` to `end`; empty without a recording with stacks."""
    ownership = profile.ownership
    if ownership.reason is not None or (blame := ownership.blame.get(view)) is None:
        return ()
    overlap = slice(int(np.searchsorted(blame.edges, start, side="right")) - 1, int(np.searchsorted(blame.edges, end)))
    lasts = np.diff(np.append(np.maximum(blame.edges[overlap], start), end))
    owners, inverse = np.unique(blame.owner[overlap], return_inverse=True)
    return ownership.owners.group_of(int(owners[np.bincount(inverse, lasts).argmax()]))


def line_cells(lines: Group) -> LineCells:
    """The values of `LINE_COLUMNS` for a line, or for fused lines; None without one."""
    if not lines:
        return None, None, None, None
    functions = functions_of(lines)
    if len(lines) > 1:
        return f"{short(lines)} {functions}", None, None, functions
    (line,) = lines
    return f"{line.text} {functions}", line.file, None if line.whole else line.line, functions


def _by_frame(trace: Trace, rows: Ints) -> tuple[list[Group], Ints]:
    """The innermost functions that may be the user's, each once, and which of them is around each event."""
    calls = rows.copy()
    roles = trace.events_at(np.maximum(rows, 0)).roles if len(rows) else None
    on_gpu = (rows >= 0) & roles.gpu if roles is not None else rows < 0
    calls[on_gpu] = trace.links.launch(rows[on_gpu])
    frames = trace.frames.of(calls)
    on_host = (rows >= 0) & ~on_gpu & ~roles.runtime if roles is not None else on_gpu
    if on_host.any():
        frames[on_host] = user_frames(trace, rows[on_host])
    names, inverse = np.unique(np.where(frames >= 0, trace.name_codes[frames], -1), return_inverse=True)
    functions = [profiled(trace.names[name]) if name >= 0 else None for name in names.tolist()]
    groups: list[Group] = [
        (SourceLine(frame.file, frame.line, plain_function(frame.function), whole=True),) if frame is not None else ()
        for frame in functions
    ]
    return groups, inverse.reshape(-1)


def _labels(texts: "list[str | None] | tuple[str | None, ...]", indices: Ints) -> pa.Array:
    """Texts as labels, each once; the label of each row."""
    numbers: dict[str | None, int] = {text: number for number, text in enumerate(dict.fromkeys(filter(None, texts)))}
    of_text = np.array([numbers.get(text, -1) for text in texts], np.int32)
    numbers_of_rows = of_text[indices] if len(of_text) else np.zeros(0, np.int32)
    return pa.DictionaryArray.from_arrays(
        pa.array(numbers_of_rows, mask=numbers_of_rows < 0), pa.array([*numbers], pa.string())
    )
