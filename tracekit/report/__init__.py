"""The report is data: an ordered list of sections, which faces draw.

    Subject ──report()──▶ Report ──producers──▶ sections of blocks ──outline()──▶ faces, TUI

- A **block** (`blocks`) is one of six kinds of data: sentences, a table, a breakdown, a series, notes, an excerpt of
  source. A face has a renderer for each kind, and does not depend on particular sections.
- A **section** (`section`) has a title, a scope (one trace, one variant, a comparison, the whole run) and blocks.
- A **producer** (`section`, too) makes the sections of one question. It is one function under `@of_run`, `@of_variant`,
  `@of_comparison`, `@of_trace`, `@of_study` or `@rows_of_study`; the built-in ones are the files of `sections/`.
  Analyses (tracekit.analyses) and rules (tracekit.findings) have registries of their own, in lower layers; two of the
  producers bring their results in.
- The **outline** (`outline`) is what people read of the sections: grouped, without repetition, ordered by their worth
  in this run, and short unless everything is requested. Programs get the sections as they are.

To add a question: a file in `sections/`, or in `analyses/` where it is about the columns of one variant. To add a face:
a file in `tracekit.faces`.
"""

from tracekit.report.model import Report, report

__all__ = ["Report", "report"]
