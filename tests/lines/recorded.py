"""A recording with stacks and lines, small enough to check by hand, and the run to which it belongs."""

import gzip

import msgspec
from small import event, op, step, write

from tracekit.engine.buckets import KEYS
from tracekit.run import Requested, Run, Traces, Variant, now
from tracekit.run import write as write_run
from tracekit.vocabulary import lines_file
from tracekit.vocabulary.lines_file import Code, Function, LinesFile, Mark

SOURCE = """\
def work(x):
    y = slow(x)
    z = y + 1
    return fast(z)
"""
FILE = "/home/me/mine.py"


def call(name, start, end):
    return event("python_function", name, start, end)


def recorded(path):
    """A step of 100 µs: line 2 calls from 10 to 60, line 3 adds from 60 to 70, and line 4 calls from 80 to 100."""
    trace = write(
        path,
        step(0, 0, 100),
        call("mine.py(1): work", 0, 100),
        call("<built-in function slow>", 10, 60),
        op("aten::mm", 20, 60),
        op("aten::add", 60, 70),
        call("<built-in function fast>", 80, 100),
        op("aten::relu", 85, 95),
    )
    code = [Code(FILE, 1, "work", [2, 3, 4])]
    marks = {0: 1, 10: 2, 60: 3, 80: 4, 100: 0}
    return with_lines(trace, {10: 2, 80: 4}, marks, code=code, sources={FILE: SOURCE})


def with_lines(trace, calls, marks=(), *, thread=1, estimated=(), **more):
    """A trace with the lines file of `work`: the line of each call that it makes, by the µs at which it starts, and the
    line that runs from each mark on; 0 is none."""
    numbers = sorted({line for line in dict(marks).values() if line})
    places = {line: place for place, line in enumerate(numbers)}
    lines = LinesFile(
        schema=lines_file.SCHEMA,
        functions=[Function("mine.py(1): work", FILE, 1, "work", "user")],
        callers=[(FILE, "work")],
        call_start_ns=[1000 * start for start in calls],
        call_caller=[0] * len(calls),
        call_line=[*calls.values()],
        mark_places=[(0, line) for line in numbers],
        marks=[Mark(1000 * at, places.get(line, -1), thread, int(at in estimated)) for at, line in dict(marks).items()],
        **more,
    )
    lines_file.lines_path(trace).write_bytes(gzip.compress(msgspec.json.encode(lines)))
    return trace


def recorded_run(detail, *more):
    """A run of one variant whose steady trace takes twice as long, without stacks; `more` happens in it as well."""
    folder = detail.parent
    write(
        folder / "steady.json",
        step(5, 0, 200),
        op("aten::mm", 40, 120),
        op("aten::add", 120, 140),
        op("aten::relu", 170, 190),
        *more,
    )
    traces = Traces(steady="steady.json", detail=detail.name)
    variant = Variant(name="eager", outcome="ok", requested=Requested(compile=False), traces=traces)
    written = Run(created=now(), tracekit="0", recipe="mine", script="mine.py", variants=[variant])
    write_run(written, folder / "run.json")
    return folder / "run.json"


def of_lines(ownership):
    """What each line costs in all steps, in µs."""
    costs, total = ownership.costs["wall"], {}
    for owner, ns in zip(costs.owner.tolist(), costs.ns.tolist(), strict=True):
        for line in ownership.owners.group_of(owner):
            total[line.line] = total.get(line.line, 0) + ns / 1000
    return total


def costs_of(ownership, bucket):
    """What a bucket of the wall view takes in all steps, in ns, by the numbers of the lines that cause it."""
    costs, key, total = ownership.costs["wall"], KEYS.index(bucket), {}
    for owner, each, ns in zip(costs.owner.tolist(), costs.bucket.tolist(), costs.ns.tolist(), strict=True):
        if each == key:
            lines = tuple(line.line for line in ownership.owners.group_of(owner))
            total[lines] = total.get(lines, 0) + ns
    return total
