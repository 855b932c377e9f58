"""Takes apart a file that merges several ranks: one trace for each process that trains, with the devices it drives.

The traces equal those of single files, event by event: whatever is matched by an id – launches and kernels, operators
and their backward – is matched within one process, because the ids of one process recur in the others.
"""

import re

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.intervals import Bools, Ints, Rows, distinct
from tracekit.trace.model import Trace
from tracekit.trace.reading.tables import STORED
from tracekit.trace.roles import Ask
from tracekit.trace.schema import LABEL, TRACKS, codes, held, valid
from tracekit.trace.storing.cache import kept, result_name
from tracekit.trace.storing.column_file import Piece, in_memory

_RANK = re.compile(r"\brank[ _-]?(\d+)", re.IGNORECASE)
_SURE = 0.99  # share of a device's launched activities that one process must account for
_MAX_PROCESSES = 4096  # processes
_Owned = tuple[int, str, list[str]]  # rank, process, devices


class Part(Struct, frozen=True):
    """One process of a merged file, and which rank it is: by its name, else by the order of devices and processes."""

    rank: int
    trace: Trace


def split(trace: Trace) -> list[Part]:
    """The ranks of a merged file; none if the file is of one process, or its ranks cannot be separated."""
    pids = np.array(trace.tracks["pid"].to_pylist(), object)
    owned = kept(trace.entry, lambda: result_name("split", __name__), list[_Owned], lambda: _owned(trace, pids))
    return [Part(rank, _trace_of_tracks(trace, np.isin(pids, [pid, *devices]), pid)) for rank, pid, devices in owned]


def _owned(trace: Trace, pids: Rows) -> list[_Owned]:
    """For each rank of a merged file, its process and the devices that it drives."""
    # The processes with steps; without any, those that launch work.
    asks: tuple[Ask, ...] = (lambda roles: roles.step, lambda roles: roles.launch)
    training = next(filter(None, (sorted(trace.processes_with(ask)) for ask in asks)), [])
    if not 1 < len(training) <= _MAX_PROCESSES:
        return []
    owner = _owners(trace, pids, training)
    if owner is None:
        return []
    devices = {pid: [device for device, owner_pid in owner.items() if owner_pid == pid] for pid in training}
    order = sorted(training, key=lambda pid: (*sorted(map(_number, devices[pid]))[:1], _number(pid)))
    ranks = _ranks_in_names(trace, order, devices) or [*range(len(order))]
    return [(rank, pid, devices[pid]) for rank, pid in sorted(zip(ranks, order, strict=True))]


def _owners(trace: Trace, pids: Rows, training: list[str]) -> dict[str, str] | None:
    """Which process launched the work of each device; None if that is unknown, for example if two share a device.

    Correlation ids recur in every process. But in the right process, each activity of the device has a call, and begins
    no earlier than that call.
    """
    number_of = {pid: number for number, pid in enumerate(training)}
    process = np.array([number_of.get(pid, -1) for pid in pids])
    calls = trace.where(lambda part: part.roles.runtime & (process[part.track] >= 0) & (part.correlation > 0))
    work = trace.where(lambda part: part.roles.gpu & (part.correlation > 0))
    owners: dict[str, str] = {}
    for device in sorted({str(pid) for pid in pids[distinct(trace.track[work])]}):
        if device in number_of:
            return None
        rows = work[pids[trace.track[work]] == device]
        scores = [_launched(trace, calls[process[trace.track[calls]] == number], rows) for number in number_of.values()]
        has_device = [pid in owners.values() for pid in training]  # of equals one without a device
        best = max(range(len(scores)), key=lambda number: (*scores[number][:2], not has_device[number]))
        able = max(fitting for _, _, fitting in scores)
        if not able or scores[best][0] < _SURE * able:
            return None
        owners[device] = training[best]
    launching = {str(pid) for pid in pids[distinct(trace.track[calls])]}
    return owners if not owners or launching <= {*owners.values()} else None


def _launched(trace: Trace, calls: Ints, work: Ints) -> tuple[int, int, int]:
    """How many of these activities begin after a call of the same id, how long they waited (negative), and how many ids
    match."""
    ids, first = np.unique(trace.correlation[calls], return_index=True)
    if not len(ids):
        return 0, 0, 0
    position = np.minimum(np.searchsorted(ids, trace.correlation[work]), len(ids) - 1)
    fits = ids[position] == trace.correlation[work]
    delay = trace.ts_ns[work] - trace.ts_ns[calls[first[position]]]
    after = fits & (delay >= 0)
    return int(after.sum()), -int(delay[after].sum()), int(fits.sum())


def _number(text: str) -> tuple[int, int, str]:
    return (0, int(text), text) if text.lstrip("-").isdecimal() and len(text) < 19 else (1, 0, text)


def _ranks_in_names(trace: Trace, order: list[str], devices: dict[str, list[str]]) -> list[int] | None:
    """The ranks in the names of processes or of their devices, if each has one."""
    names: dict[str, list[str]] = {}
    for row in trace.tracks.select(["pid", "process"]).to_pylist():
        names.setdefault(row["pid"], []).append(row["process"] or "")
    ranks = []
    for pid in order:
        texts = (text for process in (pid, *devices[pid]) for text in (process, *names.get(process, ())))
        rank_match = next((match for text in texts if (match := _RANK.search(text))), None)
        if rank_match is None:
            return None
        ranks.append(int(rank_match[1]))
    return ranks if len(set(ranks)) == len(ranks) else None


def _trace_of_tracks(trace: Trace, tracks: Bools, pid: str) -> Trace:
    """The events of some tracks as a separate trace."""
    meta = {key: value for key, value in trace.meta.items() if key != "distributedInfo"}
    entry = replace(trace.entry, prefix=f"{trace.entry.prefix}process-{pid}-") if trace.entry is not None else None
    track_rows = np.flatnonzero(tracks)
    columns = [trace.tracks[name].take(track_rows) for name in TRACKS.names]
    columns[0] = pa.array(np.arange(len(track_rows)), pa.int32())
    names = {*zip(*(trace.tracks[name].take(track_rows).to_pylist() for name in ("pid", "tid")), strict=True)}

    def of_names(table: pa.Table) -> pa.Table:
        keys = zip(table["pid"].to_pylist(), table["tid"].to_pylist(), strict=True)
        return table.filter(pa.array([key in names for key in keys], pa.bool_()))

    def events() -> pa.Table:
        rows = np.flatnonzero(tracks[trace.track])
        number = np.cumsum(tracks) - 1
        pieces, dictionaries = [], []
        for field in STORED:
            column = trace.recorded.events[field.name].combine_chunks()
            whole = column if isinstance(column, pa.Array) else column.chunk(0)
            if field.type == LABEL:
                dictionaries.append(whole.dictionary)
                pieces.append(Piece(codes(trace.recorded.events[field.name])[rows]))
            elif field.name == "track":
                pieces.append(Piece(number[trace.track[rows]].astype(np.int32)))
            else:
                is_valid = valid(whole)[rows] if whole.null_count else None
                pieces.append(Piece(held(trace.recorded.events[field.name])[rows], is_valid))
        return in_memory(pieces, STORED, dictionaries)

    return replace(
        trace,
        read_events=events,
        tracks=pa.Table.from_arrays(columns, schema=TRACKS),
        communications=of_names(trace.communications),
        notes=of_names(trace.notes),
        meta=meta,
        entry=entry,
        process=pid,
    )
