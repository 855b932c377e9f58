"""The report is data: an ordered list of sections, which faces draw and nobody else.

    Subject ──report()──▶ Report ──producers──▶ sections of blocks ──outline()──▶ faces, TUI

- A **block** (`blocks`) is one of six kinds of data: sentences, a table, a breakdown, a series, notes, an excerpt of
  source. A face has a renderer for each kind, and knows no section by its name.
- A **section** (`section`) has a title, a scope (one trace, one variant, a comparison, the whole run) and blocks.
- A **producer** (`registry`) makes the sections of one question. It is one function under `@of_run`, `@of_variant`,
  `@of_comparison` or `@of_trace`; those of the house are the files of `sections/`. Analyses (tracekit.analyses) and
  rules (tracekit.findings) have registries of their own, lower down, and reach the report through two of them.
- The **outline** (`outline`) is what a person reads of the sections: grouped, each thing said once, ordered by what it
  is worth in this run, short unless all is asked for. Machines get the sections as they are.

To add a question: a file in `sections/`, or in `analyses/` where it is about the columns of one variant. To add a face:
a file in `tracekit.faces`.
"""

from tracekit.report.model import Report, report

__all__ = ["Report", "report"]
