"""A run or a trace in a notebook: `tracekit.load("run.json")["kernels"]`."""

import os
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from tracekit.errors.asking import UnknownVariantError
from tracekit.plots import plot
from tracekit.profile import Profile, Subject, open_subject
from tracekit.ranks.readers import open_ranks, readers
from tracekit.report import Report, report
from tracekit.report.sections.headline import headline
from tracekit.report.sections.run_facts import doubt_lines
from tracekit.report.tables import every_table
from tracekit.trace.schema import metadata

if TYPE_CHECKING:
    from tracekit.hta.traces import ColumnAnalysis
    from tracekit.plots.shared import Chart


class ShownReport(Report, frozen=True):
    """A report that a notebook draws instead of printing the names of its parts."""

    def _repr_html_(self) -> str:
        from tracekit.faces.html import render

        # It is in a frame of its own, whose script cannot reach anything in the notebook.
        page = escape(render(self))
        return f'<iframe sandbox="allow-scripts" width="100%" height="700" srcdoc="{page}"></iframe>'

    def _repr_markdown_(self) -> str:
        from tracekit.faces import Options
        from tracekit.faces.markdown import render

        return render(self, Options())

    def __repr__(self) -> str:
        return "\n".join([*doubt_lines(self), *headline(self)])


class Plots:
    """Charts of a report: matplotlib figures that a notebook shows. They need the extra `plot`."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def attribution(self) -> "Chart":
        """Where the time of a step goes, a stacked bar for each variant."""
        return plot(self._report, "attribution")

    def waterfall(self) -> "Chart":
        """From the baseline's step to each variant's, bucket by bucket."""
        return plot(self._report, "waterfall")

    def steps(self) -> "Chart":
        """A bar for each step."""
        return plot(self._report, "steps")

    def lines(self) -> "Chart":
        """The most expensive lines of yours."""
        return plot(self._report, "lines")

    def measures(self) -> "Chart":
        """Step time and memory of the variants, on a logarithmic scale."""
        return plot(self._report, "measures")


class Tables(Mapping[str, pa.Table]):
    """The tables that `tracekit export` writes, by name, as Arrow; `pandas(name)` gives a data frame.

    The first column of every table is the variant; times are int64 ns. `report` has means, differences and answers.
    """

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    @property
    def profiles(self) -> list[Profile]:
        """The variants, each with its trace and attribution."""
        return self._subject.profiles

    @cached_property
    def report(self) -> "ShownReport":
        """Everything that the faces show, with the first variant as the baseline. A notebook renders it."""
        made = report(self._subject)
        return ShownReport(made.subject, made.baseline, made.comparisons)

    @property
    def plot(self) -> Plots:
        """Charts: `data.plot.waterfall()`."""
        return Plots(self.report)

    def sql(self, query: str) -> pa.Table:
        """The result of an SQL query in DuckDB, in which every table is a view. Needs the extra `sql`."""
        from tracekit.sql import query as ask

        return ask(self.report, query)

    @cached_property
    def _tables(self) -> dict[str, pa.Table]:
        return {name: stream.table() for name, stream in every_table(self.report).items()}

    def __getitem__(self, name: str) -> pa.Table:
        if name not in self._tables:
            raise KeyError(f"{name}: no such table. Available: {', '.join(self._tables)}")
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def document(self) -> dict[str, Any]:
        """Everything the report says as plain data, as `--format json` writes it."""
        from tracekit.faces.shared.document import as_document

        return as_document(self.report)

    def pandas(self, name: str) -> pd.DataFrame:
        """The table as a data frame, exact: a column of whole numbers with gaps stays integer (`Int64`).

        Text that repeats is categorical. `frame.attrs["units"]` has the unit of each column that has one, and
        `frame.attrs["meanings"]` says what each holds.
        """
        return _frame(self[name])

    def hta(
        self, variant: str | None = None, *, rounded: bool = False, include_last_profiler_step: bool = True
    ) -> "ColumnAnalysis":
        """HTA's `TraceAnalysis` of a variant, by default the first: `data.hta().get_temporal_breakdown()`.

        It is made of the columns that were read, all ranks of the variant together, with exact times and the last step.
        `rounded=True, include_last_profiler_step=False` gives HTA's own defaults. It needs the extra `hta`.
        """
        from tracekit.hta import trace_analysis

        named = [profile for profile in self.profiles if variant in (None, profile.name)]
        if not named:
            raise UnknownVariantError(str(variant), [profile.name for profile in self.profiles])
        return trace_analysis(named[0], rounded=rounded, include_last_profiler_step=include_last_profiler_step)

    def __repr__(self) -> str:
        return "\n".join([*doubt_lines(self.report), *headline(self.report)])


def _frame(table: pa.Table) -> pd.DataFrame:
    frame: pd.DataFrame = table.to_pandas()
    for field in table.schema:
        if table[field.name].null_count and pa.types.is_integer(field.type):  # floats would lose the last ns
            frame[field.name] = table[field.name].to_pandas(types_mapper={field.type: pd.Int64Dtype()}.get)
        elif table[field.name].null_count and pa.types.is_boolean(field.type):
            frame[field.name] = table[field.name].to_pandas(types_mapper={field.type: pd.BooleanDtype()}.get)
    by_key = {key: {field.name: metadata(field, key) for field in table.schema} for key in ("unit", "comment")}
    frame.attrs["units"] = {name: unit for name, unit in by_key["unit"].items() if unit}
    frame.attrs["meanings"] = {name: comment for name, comment in by_key["comment"].items() if comment}
    return frame


def load(
    *paths: str | Path, infer_steps: bool = True, workers: int | None = None, cluster: str | None = None
) -> Tables:
    """Open a run or one or several traces. Raises a TracekitError that says what to do.

    With `infer_steps`, what plainly repeats in a trace without ProfilerStep annotations takes the place of steps. The
    ranks of a job are read by `workers` processes, or by the workers of the Dask scheduler at the address `cluster`. (A
    script that asks for processes has to do so under `if __name__ == "__main__":`, as with any pool of processes.)
    """
    if not paths or not all(isinstance(path, str | os.PathLike) for path in paths):
        types = ", ".join(type(path).__name__ for path in paths) or "nothing"
        raise TypeError(
            f"tracekit.load takes paths, and was given {types}. Name each: tracekit.load('eager.json', 'compiled.json')"
        )
    given = [Path(path) for path in paths]
    open_here = partial(open_subject, infer_steps=infer_steps)
    if not workers and cluster is None:
        return Tables(open_here(given))
    with readers(workers or 1, cluster) as those:
        return Tables(open_ranks(given, those, open_here, infer_steps=infer_steps))
