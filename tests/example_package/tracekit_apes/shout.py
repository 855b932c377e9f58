"""The titles of the sections, loudly."""

from tracekit.faces import Options, face
from tracekit.report import Report


@face("shout")
def render(report: Report, options: Options) -> str:
    """The report in that format."""
    return "".join(f"{section.title.upper()}\n" for section in report.sections)
