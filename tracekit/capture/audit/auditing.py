"""Audits a recipe or a script, a few steps on the emulated GPU in a separate process, and draws the result for
people and for programs.
"""

from collections.abc import Callable, Collection
from itertools import groupby
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tracekit.base import interruption
from tracekit.base.names import sanitize
from tracekit.base.units import many
from tracekit.capture import messages, process
from tracekit.capture.file_view import with_files
from tracekit.capture.guardian import folder_lock
from tracekit.capture.job import Audit, Job, Kind, Row
from tracekit.capture.options import Options
from tracekit.capture.preparation import check_kind, check_options, trains_by_itself
from tracekit.errors.capturing import AuditFailedError, NoStepsError
from tracekit.run import Effective
from tracekit.run.settings import Settings, values_of

__all__ = ["Options", "audit", "exit_code"]
SCHEMA = "tracekit.audit/1"
_WIDTH = 100  # of a line of source
_HEADS: dict[Kind, str] = {
    "sync": "sync – the host waits until the GPU has caught up",
    "copy": "copy – the host waits for a copy to the GPU",
    "mixed": "mixed – crashes on a GPU: tensors on several devices",
    "break": "break – torch.compile would break its graph",
}
_LIMITS = (
    "This was found on a CPU that pretends to be a GPU: it shows what would wait, but not for how long, and only on "
    "lines that these steps reached."
)
_NOUNS: dict[Kind, tuple[str, str]] = {
    "sync": ("wait", "waits"),
    "copy": ("blocking copy", "blocking copies"),
    "break": ("graph break", "graph breaks"),
}


def audit(options: Options) -> Audit:
    """Run the first variant, and say what would block. If the run failed, `failure` says why."""
    check_options(options)
    check_kind(options, trains_by_itself(options), "audit")
    with interruption.by_any_signal(), folder_lock(), process.scratch() as scratch:
        job = Job(
            **{**values_of(options, Settings), "is_script": trains_by_itself(options)},
            stage="audit",
            program=str(options.program),
            label=next(iter(options.variants), "eager"),
        )
        result = process.perform(job, scratch, scratch / "audit.log", options.timeout)
    for note in result.notes:
        options.tell(f"  {note}")
    for line in (*(files := with_files(Effective(), [result])).notes, *files.remarks):
        options.tell(f"  {line}")
    if result.outcome == "ok":
        return _with_short_names(result.audit)
    if result.no_steps:
        raise NoStepsError(options.program, result.error or "")
    for line in messages.quoted(result.traceback):
        options.tell(line)
    why = result.error or result.outcome
    if not result.audit.rows and not result.audit.steps:
        raise AuditFailedError(options.program, why)
    return replace(_with_short_names(result.audit), failure=why)


def exit_code(audit: Audit, fail_on: Collection[Kind]) -> int:
    """1 if the audit failed, or has a row of a kind that must not occur."""
    return int(audit.failure is not None or any(row.kind in fail_on for row in audit.rows))


def _with_short_names(audit: Audit) -> Audit:
    """The audit, with file names relative to the current folder."""
    return replace(audit, rows=[replace(row, file=str(messages.short(Path(row.file)))) for row in audit.rows])


def as_json(audit: Audit, file: object) -> str:
    """The audit as JSON."""
    rows = [msgspec.to_builtins(row) for row in audit.rows]
    document = {"schema": SCHEMA, "file": str(file), "steps": audit.steps, "rows": rows, "notes": audit.notes}
    document |= {"used": audit.used, "failure": audit.failure}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def as_text(audit: Audit, file: object) -> str:
    """The audit as text, in which nothing from the script can control the terminal."""
    lines = [f"{messages.short(Path(str(file)))} on an emulated GPU, {many(audit.steps, 'step')}: {_summary(audit)}"]
    for kind, rows in groupby(audit.rows, key=lambda row: row.kind):
        lines += ["", _HEADS[kind]]
        for row in rows:
            seldom = _is_seldom(row, audit.steps)
            often = f"{_count(row.count if seldom else row.per_step)} ×" if row.per_step else "once"
            steps_note = f" (in {row.in_steps} of {audit.steps} steps)" if seldom else ""
            loader = " (in the data loader)" if row.loading else ""
            lines.append(f"{often:>8} {row.file}:{row.line} {row.function}{steps_note}{loader}")
            if row.source:
                lines.append(f"{'':9}{sanitize(row.source, _WIDTH)}")
            lines.append(f"{'':9}{row.operator} {row.why}" + (f", in {row.via}" if row.via else ""))
    lines += ["", _LIMITS]
    lines += [f"Left open: {note}{'' if note.endswith('?') else '.'}" for note in audit.notes]
    if audit.failure:
        lines.append(f"The audit did not finish: {audit.failure}")
    return "".join(f"{sanitize(line)}\n" for line in lines)


def _summary(audit: Audit) -> str:
    if not audit.rows:
        return "nothing blocks there" if audit.used else "nothing was put there"
    crashes = sum(row.kind == "mixed" for row in audit.rows)
    in_steps = [row for row in audit.rows if not row.loading]
    usual = [row for row in in_steps if not _is_seldom(row, audit.steps)]
    seldom = [row for row in in_steps if _is_seldom(row, audit.steps)]
    clauses = [
        f"it would crash at {many(crashes, 'line')}" if crashes else "",
        _amounts(usual, lambda row: row.per_step, "a step"),
        _amounts(seldom, lambda row: row.count, "in only some of the steps"),
        _amounts([row for row in audit.rows if row.loading], lambda row: row.count, "in the data loader"),
    ]
    return "; ".join(filter(None, clauses))


def _amounts(rows: list[Row], amount: Callable[[Row], float], where: str) -> str:
    """`2 waits, 1 blocking copy a step`: the sum of the amounts for each kind of these rows; empty if there is none."""
    amounts = []
    for kind, noun in _NOUNS.items():
        if of_kind := [row for row in rows if row.kind == kind]:
            total = sum(map(amount, of_kind))
            amounts.append(f"{_count(total)} {noun[total != 1]}")
    return f"{', '.join(amounts)} {where}" if amounts else ""


def _is_seldom(row: Row, steps: int) -> bool:
    """Whether it happens in fewer than half of the steps, so that a mean would describe none of them."""
    return 0 < row.in_steps < steps / 2


def _count(per_step: float) -> str:
    return f"{per_step:.2f}".rstrip("0").rstrip(".")
