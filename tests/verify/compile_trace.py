"""What was compiled according to torch's own logs, read without any of tracekit's code, to check its ledger."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_RECORD = re.compile(r"^V\d{4} \S+ \d+ \S+\] (\{.*\})$")


@dataclass(frozen=True)
class Counts:
    """How many graphs were compiled, how many of them were recompilations, and how often a graph broke."""

    graphs: int = 0
    recompiles: int = 0
    breaks: int = 0

    def __str__(self) -> str:
        return f"{self.graphs}/{self.recompiles}/{self.breaks}"

    @classmethod
    def read(cls, text: str) -> "Counts":
        """`10/6/6` → graphs, recompiles and breaks."""
        return cls(*map(int, text.split("/")))


def structured(folder: Path) -> Counts:
    """The counts of the structured log that TORCH_TRACE writes into a folder."""
    records = [record for log in folder.glob("dedicated_log_torch_trace_*.log") for record in _records(log)]
    artifacts = [record["artifact"]["name"] for record in records if "artifact" in record]
    with_graph = {_id(record) for record in records if "dynamo_output_graph" in record}
    failed = {_id(record) for record in records if (record.get("compilation_metrics") or {}).get("fail_type")}
    return Counts(
        len(with_graph - failed),
        artifacts.count("recompile_reasons"),
        artifacts.count("dynamo_graph_break_reason"),
    )


def _id(record: dict[str, Any]) -> tuple[Any, Any]:
    return record.get("frame_id"), record.get("frame_compile_id")


def logged(stderr: str) -> tuple[int, int]:
    """Recompilations and graph breaks that TORCH_LOGS=recompiles,graph_breaks reported on stderr."""
    return stderr.count("[__recompiles] Recompiling function"), stderr.count("[__graph_breaks] Graph break ")


def _records(log: Path) -> Iterator[dict[str, Any]]:
    """The records of a log: one JSON object a line, followed by its indented payload."""
    with open(log, errors="replace") as lines:
        for line in lines:
            if record := _RECORD.match(line):
                yield json.loads(record[1])
