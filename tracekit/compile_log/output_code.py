"""From which lines does each call of a compiled graph come, if the compiler stores no stacks for its kernels?

This is the case before torch 2.9, and if a backward graph is compiled late. Comments in the code that Inductor
generates name the nodes that a call was made of, and the graphs that it was made from give the line of each node.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_FILE = re.compile(r"\s*# File: (.+):(\d+) in (\S+), code:")
_NO_FILE = re.compile(r"\s*# No stacktrace found")
_NODE = re.compile(r"\s*(\w+)(?:: \"[^\"]*\")? = (?:torch\.ops\.(\w+\.\w+))?")
_OPERATOR = re.compile(r"(?:torch\.ops\.)?(\w+\.\w+)")
_SOURCES = re.compile(r"\s*# (?:Topologically Sorted |Unsorted )?Source Nodes: \[(.*?)\]")
_FRAGMENT = re.compile(r"# +%(\w+) : \[num_users=")
_KERNEL = re.compile(r"(\w+) = async_compile\.\w+\(")
_CALL = re.compile(r"\s+(?:\w+ = )?((?:extern_kernels|aten|torch\.ops)\.[\w.]+|(?:triton|cpp)_\w+)(?:\.run)?\(")
_BODY = re.compile(r"\s*def call\(")
_BACKWARD = re.compile(r"# AOT ID: \['\d+_backward'\]", re.MULTILINE)


def is_backward(code: str) -> bool:
    """Whether generated code is that of a backward graph."""
    return _BACKWARD.search(code) is not None


class Node(NamedTuple):
    """A node of a graph."""

    frame: str  # its line, as Python prints a frame of a stack
    operator: str  # `aten.mm`; empty where it calls something else


def nodes_of(graph: str) -> dict[str, Node]:
    """The nodes of a printed graph that have a line, by name."""
    nodes: dict[str, Node] = {}
    frame = ""
    for line in graph.splitlines():
        if file := _FILE.match(line):
            frame = f'File "{file[1]}", line {file[2]}, in {file[3]}'
        elif _NO_FILE.match(line):
            frame = ""
        elif frame and (node := _NODE.match(line)):
            nodes[node[1]] = Node(frame, node[2] or "")
    return nodes


def calls(code: str, sources: Mapping[str, Node], nodes: Mapping[str, Node]) -> list[tuple[str, list[str]]]:
    """What generated code calls, in order: "name:position", and the frames of the work behind it.

    `sources` are the nodes that Dynamo traced, `nodes` those of the graph that was lowered. Comments name the nodes of
    a Triton kernel and the sources of an operator. Without such a comment, an operator may come from any line that
    calls it, and a kernel for the CPU from any line of the graph.
    """
    kernels = _kernels(code, nodes)
    return [
        (f"{name}:{position}", kernels.get(name) or _frames(behind, sources) or _anywhere(name, nodes))
        for position, (name, behind) in enumerate(_called(code))
    ]


def _kernels(code: str, nodes: Mapping[str, Node]) -> dict[str, list[str]]:
    """The frames of the kernels whose nodes are named."""
    kernels: dict[str, list[str]] = {}
    fragment: list[str] = []
    for line in code.splitlines():
        if node := _FRAGMENT.match(line):
            fragment.append(node[1])
        elif not line.startswith("#"):
            if kernel := _KERNEL.match(line):
                kernels[kernel[1]] = _frames(fragment, nodes)
            fragment = []
    return kernels


def _called(code: str) -> Iterator[tuple[str, list[str]]]:
    """Each call of the code, and the sources that the comment before it names."""
    in_body, behind = False, list[str]()
    for line in code.splitlines():
        in_body = bool(_BODY.match(line)) or (in_body and (not line or line[0].isspace()))
        if not in_body:
            continue
        if sources := _SOURCES.match(line):
            behind = sources[1].split(", ")
        elif call := _CALL.match(line):
            yield call[1], behind
            behind = []


def _frames(names: list[str], nodes: Mapping[str, Node]) -> list[str]:
    return [*dict.fromkeys(nodes[name].frame for name in names if name in nodes)]


def _anywhere(name: str, nodes: Mapping[str, Node]) -> list[str]:
    if name.startswith("cpp_"):
        return [*dict.fromkeys(node.frame for node in nodes.values())]
    operator = _OPERATOR.match(name.replace("extern_kernels.", "aten."))
    return [*dict.fromkeys(node.frame for node in nodes.values() if operator and node.operator == operator[1])]
