"""What is taken for a trace and is none is named by its content, in one sentence that says what to do."""

import gzip
import json
import pickle
from pathlib import Path

import pytest

from tracekit.cli import main
from tracekit.trace import Trace


def varint(number: int) -> bytes:
    return bytes([number & 127 | 128, number >> 7])


def packets(*lengths: int) -> bytes:
    """A trace of Perfetto: packets, each of a field of that many bytes."""
    return b"".join(b"\n" + varint(length + 3) + b"\x1a" + varint(length) + b"x" * length for length in lengths)


class Runs:
    """What a pickle does when it is opened."""

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return exec, ("raise SystemExit('a pickle was opened')",)


RECORD = 'V1122 01:19:27.696000 3529 torch/_dynamo/utils.py:2350] {"compilation_metrics": {"compile_id": "0/0"}}\n'
EVENT = '{"ph": "X", "cat": "%s", "name": "n", "pid": 1, "tid": 1, "ts": 1, "dur": 2}'
PERFETTO = '{"traceEvents": [' + EVENT % "toplevel" + '], "metadata": {"trace-config": ""}}'
FOREIGN = {
    "timeline": (json.dumps([[1, 2, 3], [[0, 5], [4, 5], [0, 0]]]), "a memory timeline of PyTorch"),
    "timeline, one a line": ("[\n [1700000000, 2],\n [[5], [6]]]", "a memory timeline of PyTorch"),
    "raw timeline": (json.dumps([[1700, 0, 1024, 2], [1701, 1, 512, 0]]), "a memory timeline of PyTorch"),
    "empty timeline": ("[[], []]", "a memory timeline of PyTorch"),
    "timeline in html": (
        '<html><head><meta charset="utf-8" /><title>GPU Memory Timeline HTML</title></head></html>',
        "an HTML page with PyTorch's memory timeline",
    ),
    "html": ("\n<!DOCTYPE html>\n<html>", "it is an HTML page"),
    "execution trace": (
        '{\n  "schema": "1.1.1-chakra.0.0.4", "pid": 7, "time": "2026-01-01", "start_ts": 5,\n  "nodes": [{"id": 1}]}',
        "an execution trace of PyTorch",
    ),
    "early execution trace": ('{"schema": "1.0.1", "nodes": [], "finish_ts": 9}', "an execution trace of PyTorch"),
    "chakra": (b"\x07\n\x050.0.4\x10\x08\x01", "Chakra's binary format"),
    "rocprofv3": ('{"rocprofiler-sdk-tool": [{"metadata": {"pid": 1}}]}', "JSON of rocprofv3"),
    "snapshot": (pickle.dumps({"segments": [], "opened": Runs()}), "https://docs.pytorch.org/memory_viz"),
    "saved": (b"PK\x03\x04\x00\x00archive/data.pkl", "a ZIP archive"),
    "pftrace": (packets(200, 300, 150, 700, 140), "Perfetto's binary format"),
    "nsight compute": (b"NVR\0\x01\x00\x00\x00", "a report of Nsight Compute"),
    "compile log": (RECORD * 3, "--compile-log"),
    "compile log of a rank": ("[rank0]:" + RECORD, "--compile-log"),
    "browser": (PERFETTO, "a browser or Perfetto wrote it"),
    "viztracer": (PERFETTO.replace("metadata", "viztracer_metadata"), "VizTracer wrote it"),
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("content", FOREIGN)
def test_a_foreign_file_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, packed: bool
) -> None:
    given, said = FOREIGN[content]
    data = given.encode() if isinstance(given, str) else given
    path = tmp_path / "trace.json"
    path.write_bytes(gzip.compress(data) if packed else data)
    assert main(["report", str(path)]) == 1
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("content", ["hello", "{}", "a,b,c\n1,2,3\n", "\n" * 60, '{"schema": 1}', '[["a"]]', "[1, 2]"])
def test_what_nobody_knows_is_not_given_a_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    path = tmp_path / "trace.json"
    path.write_text(content)
    assert main(["report", str(path)]) == 1
    assert "(it is " not in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        '{"traceEvents": [' + EVENT % "cpu_op" + '], "metadata": {}}',  # keys that others may have added
        '{"schemaVersion": 1, "otherData": {}, "traceEvents": [' + EVENT % "mine" + "]}",
        '{"schema": "1", "nodes": [], "traceEvents": [' + EVENT % "cpu_op" + "]}",
        "[" + EVENT % "cpu_op" + "]",
    ],
)
def test_a_trace_is_a_trace_whatever_else_is_in_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.json").write_text(text)
    assert len(Trace.load(tmp_path / "t.json", use_cache=False).events) == 1
