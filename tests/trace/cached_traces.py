"""Traces that are large enough for the cache, and which parts of them it holds."""

import gzip
import json
from pathlib import Path

from tracekit.faces.shared.document import as_document
from tracekit.profile import open_subject
from tracekit.report import report


def made(path: Path, mega: int) -> Path:
    stack = "x" * 300
    events = []
    for step in range(40):
        events.append(
            {
                "ph": "X",
                "cat": "user_annotation",
                "name": f"ProfilerStep#{step}",
                "pid": 1,
                "tid": 1,
                "ts": step * 1000,
                "dur": 900,
            }
        )
        for k in range(mega * 50):
            op = {
                "ph": "X",
                "cat": "cpu_op",
                "name": f"op{k % 9}",
                "pid": 1,
                "tid": 1,
                "ts": step * 1000 + k % 800,
                "dur": 1,
            }
            events.append({**op, "args": {"External id": k, "Call stack": stack}})
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": events}).encode(), 1))
    return path


def document(path: Path) -> str:
    return json.dumps(as_document(report(open_subject([path]))), sort_keys=True)


def folder_of(home: Path) -> Path:
    return next((home / "traces").iterdir())


def litter(home: Path) -> list[Path]:
    return list((home / "work").iterdir()) if (home / "work").exists() else []
