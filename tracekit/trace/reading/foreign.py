"""Files that are taken for a trace and are none: what each is, known by its content whatever it is called.

A kind of file is one entry here. They are asked only about files in which no event can be read.
"""

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from tracekit.errors import TracekitError
from tracekit.trace.reading.source import Source
from tracekit.vocabulary import event_names

_HEAD = 1 << 16  # bytes, unpacked
_PACKETS = 4  # of a Perfetto trace that are looked at
# Categories of events that PyTorch's profiler writes, without those that other programs use as well.
_CATEGORIES = {
    *event_names.GPU_CATEGORIES,
    *event_names.RUNTIME_CATEGORIES,
    *("cpu_op", "user_annotation", "gpu_user_annotation", "python_function", "overhead", "cpu_instant_event"),
    *("cuda_sync", "hpu_op", "mtia_ccp_events", "fwdbwd", "ac2g"),
}
_KEYS_OF_KINETO = {"schemaVersion", "deviceProperties", "baseTimeNanoseconds", "traceName", "distributedInfo"}
_KEYS_OF_OTHERS = {
    "viztracer_metadata": "VizTracer",
    "otherData": "another program than PyTorch",
    "systemTraceEvents": "a browser",
    "controllerTraceDataKey": "a browser",
    "metadata": "a browser or Perfetto",
}


class Shape(Struct, frozen=True):
    """A kind of file: what it is, in words that follow "is not a PyTorch profiler trace", and what to do with it if
    that is not to write a trace."""

    what: str
    recognises: Callable[[bytes], bool]
    next_step: str | None = None


def _begins(pattern: bytes) -> Callable[[bytes], bool]:
    """Whether a file begins so, after a byte order mark and white space."""
    beginning = re.compile(rb"(?:\xef\xbb\xbf)?\s*" + pattern, re.DOTALL)
    return lambda head: beginning.match(head) is not None


def _holds(*keys: str) -> Callable[[bytes], bool]:
    """Whether a file begins as a JSON object that soon has all of these keys."""
    patterns = [re.compile(rb'"' + key.encode() + rb'"\s*:') for key in keys]
    is_object = _begins(rb"\{")
    return lambda head: is_object(head) and all(pattern.search(head) for pattern in patterns)


def _is_perfetto(head: bytes) -> bool:
    """Whether these are packets of Perfetto's protobuf, each with its length before it."""
    position = 0
    if not head.strip(b"\n"):
        return False
    for _ in range(_PACKETS):
        length = shift = 0
        if head[position : position + 1] != b"\n":
            return False
        position += 1
        while position < len(head) and shift < 35:
            byte = head[position]
            position, length, shift = position + 1, length | (byte & 127) << shift, shift + 7
            if byte < 128:
                break
        position += length
        if position >= len(head):
            return length > 0 and (position == len(head) or len(head) == _HEAD)
    return True


SHAPES = (
    Shape(
        "it is an HTML page with PyTorch's memory timeline, which has neither operators nor kernels",
        lambda head: _begins(rb"<(?:!doctype|html)")(head.lower()) and b"memory timeline" in head.lower(),
    ),
    Shape("it is an HTML page", lambda head: _begins(rb"<(?:!doctype html|html)")(head.lower())),
    Shape(
        "it is a memory timeline of PyTorch, which has neither operators nor kernels",
        _begins(rb"\[\s*\[\s*(?:[-\d\[\]])"),
    ),
    Shape(
        "it is an execution trace of PyTorch, which has operators and their inputs, but no times",
        _holds("schema", "nodes"),
    ),
    Shape(
        "it is an execution trace in Chakra's binary format",
        lambda head: re.match(rb".{1,2}\n[\x05-\x08]\d+\.\d+\.\d+", head, re.DOTALL) is not None,
    ),
    Shape("it is JSON of rocprofv3, which knows nothing of operators and steps", _holds("rocprofiler-sdk-tool")),
    Shape(
        "it is a pickle of Python, as snapshots of GPU memory are, and opening one can run code",
        lambda head: re.match(rb"\x80[\x02-\x05]", head) is not None,
        "Drop a snapshot of memory on https://docs.pytorch.org/memory_viz; for a report, write a trace with "
        "prof.export_chrome_trace('trace.json.gz').",
    ),
    Shape(
        "it is a ZIP archive, as torch.save writes it",
        lambda head: head.startswith(b"PK\x03\x04"),
        "Unpack it if a trace is inside; else write one with prof.export_chrome_trace('trace.json.gz').",
    ),
    Shape("it is a trace in Perfetto's binary format, which PyTorch does not write", _is_perfetto),
    Shape("it is a report of Nsight Compute, which knows nothing of steps", lambda head: head.startswith(b"NVR\0")),
    Shape(
        "it is a log of PyTorch's compiler",
        _begins(rb"(?:\[rank\d+\]:)?[VIWEC]\d{4} [\d:.]+ \d+ [^\n]*\] ?\{"),
        "Give it beside the trace that it belongs to: tracekit report trace.json.gz --compile-log LOG",
    ),
)


def shape_of(path: Path) -> Shape | None:
    """The kind of a file in which no event can be read; None if it is none of these."""
    head = bytearray(_HEAD)
    try:
        with Source(path) as source:
            count = source.readinto(memoryview(head))
    except TracekitError:
        return None
    return next((shape for shape in SHAPES if shape.recognises(bytes(head[:count]))), None)


def other_writer(meta: Mapping[str, Any], categories: Collection[str]) -> str | None:
    """Which other program wrote JSON of this format: it has keys of that beside the events, and none of PyTorch's."""
    if _CATEGORIES.isdisjoint(categories) and _KEYS_OF_KINETO.isdisjoint(meta):
        return next((writer for key, writer in _KEYS_OF_OTHERS.items() if key in meta), None)
    return None
