"""What must a reader know besides the figures: under which conditions were the variants captured, which files do the
numbers come from, and what limits them?
"""

import pyarrow as pa

from tracekit.profile.names import spelled
from tracekit.report.blocks import Notes, Sentences, Table
from tracekit.report.comparability import described
from tracekit.report.model import Report
from tracekit.report.notes import merged
from tracekit.report.section import Contents, of_run
from tracekit.trace.schema import column

CONDITIONS = pa.schema(
    [
        column("variant", pa.string(), "variant that it applies to; null for the whole run", role="name"),
        column("run", pa.string(), "the run; null for a bare trace", role="name"),
        column("condition", pa.string(), "name of the condition"),
        column("value", pa.string(), "its value", role="place"),
    ]
)
_SUMMARY_KEYS = ("recipe", "data", "parameters", "captured", "torch")  # characters of one value


@of_run("conditions", "Conditions", rank=30, stage="end")
def conditions(report: Report) -> Contents | None:
    """A line for each run, and everything as a table, with the trace of each variant."""
    of_runs = {name: described(run) for name, run in report.subject.runs.items()}
    rows: list[dict[str, str | None]] = [
        {"run": name, "condition": label, "value": value}
        for name, labelled in of_runs.items()
        for label, value in labelled
    ]
    rows += [
        {
            "variant": profile.name,
            "run": profile.run_name or None,
            "condition": "trace",
            "value": spelled(profile.trace.path),
        }
        for profile in report.profiles
    ]
    table = Table("conditions", pa.Table.from_pylist(rows, schema=CONDITIONS), detail=True)
    lines = tuple(_line(name if len(of_runs) > 1 else "", labelled) for name, labelled in of_runs.items())
    return Contents((Sentences(lines, "quiet"), table) if lines else (table,))


def _line(name: str, labelled: list[tuple[str, str]]) -> str:
    short = {key: value[:16].replace("T", " ") if key == "captured" else value for key, value in labelled}
    summary = "; ".join(f"{key} {value}" for key, value in short.items() if key in _SUMMARY_KEYS)
    return f"{name}: {summary}" if name else summary


@of_run("notes", "What to know", rank=10, stage="end")
def notes(report: Report) -> Contents | None:
    """Every note once."""
    once = merged(report.notes, [member.name for member in report.members])
    return Contents((Notes(tuple(once)),)) if once else None
