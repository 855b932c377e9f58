"""The report for programs: one JSON object."""

from tracekit.faces import DEFAULTS, Options, face
from tracekit.faces.shared.document import as_document, as_json
from tracekit.report import Report


@face("json")
def render(report: Report, options: Options = DEFAULTS) -> str:
    """The report as JSON text."""
    return as_json(as_document(report))
