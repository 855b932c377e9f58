"""Every tool: what it is called, what it takes, and what it answers; one file for each, and one for those that run
programs.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from tracekit.agent.answers import LIMITS, Answer, Question
from tracekit.agent.inputs import Workplace
from tracekit.agent.tools.compare import CompareQuestion, Comparisons, compare
from tracekit.agent.tools.evidence import EvidenceAnswer, EvidenceQuestion, evidence
from tracekit.agent.tools.findings import Findings, FindingsQuestion, findings
from tracekit.agent.tools.lines import Lines, LinesQuestion, lines
from tracekit.agent.tools.overview import Overview, OverviewQuestion, overview
from tracekit.agent.tools.query import QueryQuestion, Rows, query
from tracekit.agent.tools.running import Audit, AuditQuestion, Captured, CaptureQuestion, audit, capture
from tracekit.base.pages import flowed


class Tool(Struct, frozen=True):
    """A question that an agent can ask. A tool that `runs` the user's program exists only with `--allow-run`."""

    answer: Callable[[Workplace, Any], Answer]
    takes: type[Question]
    gives: type[Answer]
    runs: bool = False

    @property
    def name(self) -> str:
        """What it is called."""
        return self.answer.__name__

    @property
    def description(self) -> str:
        """What it is for."""
        return flowed(self.answer.__doc__ or "")

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON schema of its arguments."""
        schema = _schema(self.takes)
        schema["properties"]["only"] = {
            "description": schema["properties"]["only"].get("description"),
            "enum": [*self.gives.lists, *LIMITS, None],
            "default": None,
        }
        return schema

    @property
    def output_schema(self) -> dict[str, Any]:
        """The JSON schema of its answers."""
        return _schema(self.gives)


TOOLS = (
    Tool(overview, OverviewQuestion, Overview),
    Tool(findings, FindingsQuestion, Findings),
    Tool(compare, CompareQuestion, Comparisons),
    Tool(lines, LinesQuestion, Lines),
    Tool(evidence, EvidenceQuestion, EvidenceAnswer),
    Tool(query, QueryQuestion, Rows),
    Tool(audit, AuditQuestion, Audit, runs=True),
    Tool(capture, CaptureQuestion, Captured, runs=True),
)


def _schema(kind: type[Struct]) -> dict[str, Any]:
    """The schema of a struct as one object, with the others that it refers to."""
    (reference,), others = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    schema = others.pop(kind.__name__)
    assert reference == {"$ref": f"#/$defs/{kind.__name__}"}
    return {**schema, **({"$defs": others} if others else {})}
