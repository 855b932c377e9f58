"""The report for programs: one JSON object."""

import json

from tracekit.faces import Options, face
from tracekit.faces.shared.document import as_document
from tracekit.report import Report


@face("json")
def render(report: Report, options: Options | None = None) -> str:
    """The report as JSON text in ASCII, whatever names contain."""
    return json.dumps(as_document(report), indent=1, allow_nan=False).replace("\x7f", "\\u007f") + "\n"
