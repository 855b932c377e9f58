"""Which collective is it, judged by the name of a kernel, a span or the profiler's record?"""

import re

_KINDS = (
    ("all_reduce", re.compile(r"all_?reduce", re.IGNORECASE)),
    ("reduce_scatter", re.compile(r"reduce_?scatter", re.IGNORECASE)),
    ("all_gather", re.compile(r"all_?gather", re.IGNORECASE)),
    ("all_to_all", re.compile(r"all_?to_?all|dispatch|combine", re.IGNORECASE)),
    ("send_recv", re.compile(r"send|recv", re.IGNORECASE)),
    ("broadcast", re.compile(r"broadcast", re.IGNORECASE)),
    ("reduce", re.compile(r"reduce", re.IGNORECASE)),
    ("barrier", re.compile(r"barrier", re.IGNORECASE)),
    ("gather", re.compile(r"gather", re.IGNORECASE)),
    ("scatter", re.compile(r"scatter", re.IGNORECASE)),
)
SAME_SIZE = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")  # on every rank
ONE_SIDED = ("broadcast", "reduce", "gather", "scatter", "send_recv")  # some rank may be done before the others


def kind_of(name: str) -> str:
    """The collective that a name indicates; `other` if it indicates none."""
    return next((kind for kind, pattern in _KINDS if pattern.search(name)), "other")
