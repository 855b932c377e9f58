"""In which order, and on which lines, does a function compute what no call shows: `a + b`, `x[i]`, `if x:`?"""

import dis
from collections.abc import Iterator
from types import CodeType

from tracekit.lines_file import Code

_KINDS = {
    "BINARY_SUBSCR": "[]",
    "BINARY_SLICE": "[]",
    "STORE_SUBSCR": "[]=",
    "STORE_SLICE": "[]=",
    "UNARY_NEGATIVE": "neg",
    "UNARY_INVERT": "~",
    "UNARY_NOT": "bool",
    "TO_BOOL": "bool",
    "CONTAINS_OP": "in",
    "GET_ITER": "iter",
    "UNPACK_SEQUENCE": "iter",
    "LOAD_ATTR": "attr",
    "STORE_ATTR": "attr=",
    "FORMAT_VALUE": "format",
    "FORMAT_SIMPLE": "format",
}


def of_file(file: str, source: str) -> list[Code]:
    """What each function of a file computes; empty for a file that is not Python."""
    try:
        module = compile(source, file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [computed for code in _functions(module) if (computed := _computed_by(file, code)).lines]


def _functions(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _functions(constant)


def _computed_by(file: str, code: CodeType) -> Code:
    lines_and_kinds = [
        (line, kind)
        for instruction in dis.get_instructions(code)
        if (kind := _kind(instruction)) is not None
        and (line := instruction.positions.lineno if instruction.positions else None) is not None
    ]
    return Code(
        file,
        code.co_firstlineno,
        code.co_name,
        [line for line, _ in lines_and_kinds],
        [kind for _, kind in lines_and_kinds],
    )


def _kind(instruction: dis.Instruction) -> str | None:
    name = instruction.opname
    if name in ("BINARY_OP", "COMPARE_OP"):
        symbol = instruction.argrepr.removeprefix("bool(").removesuffix(")")
        return symbol if symbol not in ("[]", "NB_SUBSCR") else "[]"
    if name.startswith(("POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "POP_JUMP_FORWARD_IF_", "JUMP_IF_")):
        return None if name.endswith("NONE") else "bool"
    if name.startswith("CALL") and not name.startswith("CALL_INTRINSIC"):
        return "call"
    return _KINDS.get(name)
