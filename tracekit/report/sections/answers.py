"""What did the analyses find? Each of them is a section of its variant, and kernels are also shown side by side: which
do variants share, and what does each take in each of them?
"""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from tracekit.base.names import HEAD, short
from tracekit.base.units import duration
from tracekit.findings.tried import with_results
from tracekit.report.blocks import Block, Sentences, Table
from tracekit.report.model import Report
from tracekit.report.section import Contents, Section, made_by, of_run
from tracekit.trace.schema import column

_ANALYSIS = "kernels"


@made_by("analyses")
def answers(report: Report) -> Iterator[Section]:
    """A section for each analysis and variant."""
    for profile, answer in report.answers:
        blocks: list[Block] = [Sentences((with_results(answer.sentence, report.attempts[profile.name]),))]
        if answer.table.num_rows:
            blocks.append(Table(answer.analysis, answer.table))
        yield Section(
            id=answer.analysis,
            title=answer.title,
            scope="variant",
            stage="body",
            rank=answer.rank,
            contents=Contents(tuple(blocks), worth=answer.worth, status=answer.status),
            variant=profile.name,
        )


@of_run("joined_kernels", "Kernels side by side", rank=21)
def joined_kernels(report: Report) -> Contents | None:
    """A row for each name of a kernel or copy, most time first; a column for each variant, and its difference."""
    times = {
        profile.name: dict(zip(answer.table["name"].to_pylist(), answer.table["step_ns"].to_pylist(), strict=True))
        for profile, answer in report.answers
        if answer.analysis == _ANALYSIS and len(answer.table)
    }
    if len(times) < 2:
        return None
    baselines = {name: base for name, base in report.baselines.items() if base in times}
    names = list(dict.fromkeys(name for kernel_ns in times.values() for name in kernel_ns))
    names.sort(key=lambda name: -max(kernel_ns.get(name) or 0.0 for kernel_ns in times.values()))
    shared = sum(all(name in kernel_ns for kernel_ns in times.values()) for name in names)
    everywhere = f"{shared} of {len(names)} kernels and copies are in all variants"
    exclusive_text = ", ".join(
        f"{len(alone)} in {name} alone ({duration(ns)} a step)" for name, alone, ns in _exclusive_kernels(times)
    )
    sentence = f"{everywhere}; {exclusive_text}." if exclusive_text else f"{everywhere}."
    rows = _table(names, times, baselines)
    worth = max((answer.worth or 0.0 for _, answer in report.answers if answer.analysis == _ANALYSIS), default=0.0) / 2
    return Contents((Sentences((sentence,)), Table("joined_kernels", rows)), worth=worth)


def _exclusive_kernels(times: Mapping[str, Mapping[str, float | None]]) -> list[tuple[str, list[str], float]]:
    """Each variant with the kernels that no other has, and what they take together."""
    variants_alone = []
    for name, kernel_ns in times.items():
        other_kernels = {
            kernel for other_name, other_kernel_ns in times.items() if other_name != name for kernel in other_kernel_ns
        }
        alone = [kernel for kernel in kernel_ns if kernel not in other_kernels]
        if alone:
            variants_alone.append((name, alone, sum(kernel_ns[kernel] or 0.0 for kernel in alone)))
    return variants_alone


def _table(names: list[str], times: Mapping[str, Mapping[str, float | None]], baselines: Mapping[str, str]) -> pa.Table:
    fields = [column("name", pa.string(), "name as written", role="kernel")]
    columns: list[Sequence[object]] = [names]
    titles = dict(zip(times, short([*times], HEAD), strict=True))
    for variant, kernel_ns in times.items():
        meaning = "time per counted step; null where it does not run"
        fields.append(column(f"{variant}_ns", pa.float64(), meaning, "ns", title=titles[variant]))
        columns.append([kernel_ns.get(name) for name in names])
    for variant in (variant for variant in times if baselines.get(variant) in times):
        base = times[baselines[variant]]
        meaning = f"difference from {baselines[variant]}"
        fields.append(column(f"Δ {variant}_ns", pa.float64(), meaning, "ns", title=f"Δ {titles[variant]}"))
        columns.append([(times[variant].get(name) or 0.0) - (base.get(name) or 0.0) for name in names])
    schema = pa.schema(fields)
    return pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, fields, strict=True)], schema=schema)
