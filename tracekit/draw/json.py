"""The report for machines: one JSON object."""

import json

from tracekit.report import Report


def render(found: Report) -> str:
    """The report as JSON text; whatever a name carries stands escaped in ASCII."""
    return json.dumps(found.document(), indent=1, allow_nan=False).replace("\x7f", "\\u007f")
