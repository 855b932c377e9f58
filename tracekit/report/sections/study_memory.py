"""How much memory does each variant take at its peak, beside its baseline; in which phase does each cell need the most,
and which operator on which line holds it then?
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from tracekit.base.units import many, size
from tracekit.lines.owners import PHASES
from tracekit.profile.memory_use import DeviceUse, MemoryUse, read_summary
from tracekit.profile.run_facts import records_graphs
from tracekit.report.blocks import Sentences, Table
from tracekit.report.model import Report
from tracekit.report.section import Contents, of_study, rows_of_study
from tracekit.report.sections.memory import (
    DEVICE,
    HOLDER,
    device_facts,
    held_by,
    holder_facts,
    main_device,
    main_holder,
    peak_phase,
)
from tracekit.report.sections.study_cells import SETTING, VARIANT, WORKLOAD
from tracekit.run import Memory
from tracekit.study import CellResult, Study
from tracekit.study.settings import Group, Setting, groups_of
from tracekit.trace.schema import column

_REAL, _INTEGER, _TEXT = pa.float64(), pa.int64(), pa.string()
_MEASURES = {
    "peak_allocated_bytes": "GPU memory allocated at the peak of the timed steps",
    "peak_reserved_bytes": "GPU memory reserved by the allocator",
    "split_peak_bytes": "GPU memory in unused parts of split blocks, at the peak",
    "step_peak_rss_bytes": "host memory resident at the peak of the timed steps",
    "host_peak_rss_bytes": "host memory resident at the peak of the process, compilation included",
}
MEMORY = pa.schema(
    [
        SETTING,
        WORKLOAD,
        VARIANT,
        column(
            "above_start_bytes",
            _INTEGER,
            "held at the peak of the timed steps, beyond what was held before the first",
            "B",
        ),
        column("against_baseline", _REAL, "above_start_bytes divided by the baseline's", "×"),
        *(column(name, _INTEGER, meaning, "B") for name, meaning in _MEASURES.items()),
        column("alloc_retries", _INTEGER, "how often the allocator had to empty its cache"),
        column("with_graphs", pa.bool_(), "whether CUDA graphs hold memory that the allocator counts as free"),
    ]
)
_MAX_HOLDERS = 3  # operators with their lines that a sentence names
_LISTED = 5  # rows of a cell in the table of what holds its memory
_CELL = (
    SETTING,
    WORKLOAD,
    VARIANT,
    column("seed", _INTEGER, "seed of every random number generator", role="identity"),
)
_FOLDER = column("cell", _TEXT, "folder of the cell", role="plumbing")
STEP_PEAKS = pa.schema(
    [
        *_CELL,
        *(field for field in DEVICE if field.name in ("device", "peak_bytes", "peak_phase")),
        *(
            column(f"{phase.replace(' ', '_')}_bytes", _INTEGER, f"the most that is held in the phase {phase}", "B")
            for phase in PHASES
        ),
        column("held_by", _TEXT, "operator that holds the most at the peak", role="name"),
        column("where", _TEXT, "the line on which it allocates", role="place"),
        column("held_bytes", _INTEGER, "what it holds", "B"),
        *(field for field in DEVICE if field.name not in ("device", "peak_bytes", "peak_phase")),
        _FOLDER,
    ]
)
PEAK_HOLDERS = pa.schema([*_CELL, *HOLDER, _FOLDER])


@rows_of_study("study_memory", "Memory", MEMORY, rank=8, table="peaks")
def memory(study: Study) -> Iterator[dict[str, Any]]:
    """A row for each setting and variant that was measured; the highest of all seeds."""
    for setting, group in groups_of(study):
        if not group.measured:
            continue
        baseline = setting.groups[0]
        above_bytes, base_bytes = (_max_over_seeds(side, "above_start_bytes") for side in (group, baseline))
        yield {
            "setting": setting.name,
            "workload": setting.axes["workload"],
            "variant": group.variant,
            "above_start_bytes": above_bytes,
            "against_baseline": above_bytes / base_bytes
            if above_bytes is not None and base_bytes and group is not baseline
            else None,
            **{name: _max_over_seeds(group, name) for name in (*_MEASURES, "alloc_retries")},
            "with_graphs": any(records_graphs(variant) for variant in group.variants),
        }


def _max_over_seeds(group: Group, name: str) -> int | None:
    peaks = [getattr(variant.memory, name) for variant in group.variants if variant.memory != Memory()]
    return max((peak for peak in peaks if peak is not None), default=None)


class _KnownUse(NamedTuple):
    setting: Setting
    result: CellResult
    use: MemoryUse
    device: DeviceUse

    @property
    def cell(self) -> dict[str, Any]:
        """The columns that say which cell a row is of."""
        cell = self.result.cell
        identity = {"setting": self.setting.name, "workload": cell.workload, "variant": cell.variant, "seed": cell.seed}
        return {**identity, "cell": self.result.folder.name}


@of_study("study_memory_use", "What holds the memory", rank=8)
def memory_use(_: Report, study: Study) -> Contents | None:
    """A row for each cell whose recording shows its memory, of the GPU or else of the CPU; and what holds the most at
    the peak."""
    results = [(setting, result) for setting, group in groups_of(study) for result in group.results]
    read = [(setting, result, read_summary(result.folder)) for setting, result in results if result.variant is not None]
    known_uses = [
        _KnownUse(setting, result, use, main_device(use)) for setting, result, use in read if use and use.devices
    ]
    if not known_uses:
        return None
    peaks, holders = [], []
    for known_use in known_uses:
        cell, use, device = known_use.cell, known_use.use, known_use.device
        phases = {f"{phase.phase}_bytes": phase.peak_bytes for phase in device.phases} if use.owned else {}
        row = {**cell, **device_facts(use, device), **phases}
        if (main := main_holder(device)) is not None:
            row |= {"held_by": main.operator, "where": main.where, "held_bytes": main.peak_bytes}
        peaks.append(row)
        held_rows = [row for row in holder_facts(use, device) if row["peak_bytes"]]
        holders += [{**cell, **row} for row in held_rows[:_LISTED]]
    tables = (
        Table.of("step_peaks", peaks, STEP_PEAKS, detail=True),
        Table.of("peak_holders", holders, PEAK_HOLDERS, detail=True),
    )
    unread = sum(use is None for *_, use in read)
    return Contents((Sentences(tuple(_sentences(known_uses, unread))), *tables))


def _sentences(known_uses: list[_KnownUse], unread: int) -> Iterator[str]:
    highest = max(known_uses, key=lambda known_use: known_use.device.peak_bytes)
    phase, holder = peak_phase(highest.use, highest.device), main_holder(highest.device)
    cell = f"{highest.setting.name}: {highest.result.cell.variant}"
    holding = f" The largest part is then held by {held_by(holder, highest.device)}." if holder is not None else ""
    peak = f"{size(highest.device.peak_bytes)} above the start of its recording"
    yield f"The highest peak of a step is that of {cell}: {peak}{f', in the {phase} phase' if phase else ''}.{holding}"
    phases = Counter(peak_phase(known_use.use, known_use.device) for known_use in known_uses)
    phase_counts = [
        f"in the {phase} phase in {many(number, 'cell')}" for phase, number in phases.most_common() if phase is not None
    ]
    if phase_counts:
        yield f"The peaks lie {', '.join(phase_counts)}."
    main_holders = [holder for known_use in known_uses if (holder := main_holder(known_use.device)) is not None]
    holders = Counter(
        " at ".join(filter(None, (holder.operator or "no operator", holder.where))) for holder in main_holders
    )
    holder_counts = [f"{name} ({many(number, 'cell')})" for name, number in holders.most_common()]
    if holder_counts:
        remainder = f", and {len(holder_counts) - _MAX_HOLDERS} more" if len(holder_counts) > _MAX_HOLDERS else ""
        yield f"Most of it is then held by {', '.join(holder_counts[:_MAX_HOLDERS])}{remainder}."
    if unread:
        yield f"For {many(unread, 'cell')} this is not known yet: running the same sweep again reads their recordings."
