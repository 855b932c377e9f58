"""Which Python instructions run which torch operators without a call?"""

from functools import cache

_KINDS = {
    **dict.fromkeys(("add",), ("+", "+=")),
    **dict.fromkeys(("sub", "rsub"), ("-", "-=")),
    **dict.fromkeys(("mul",), ("*", "*=")),
    **dict.fromkeys(("div", "true_divide", "reciprocal"), ("/", "/=")),
    **dict.fromkeys(("floor_divide",), ("//", "//=")),
    **dict.fromkeys(("remainder", "fmod"), ("%", "%=")),
    **dict.fromkeys(("matmul", "mm", "bmm", "mv", "dot"), ("@", "@=")),
    **dict.fromkeys(("pow", "float_power"), ("**", "**=")),
    **dict.fromkeys(("bitwise_and", "__and__", "logical_and"), ("&", "&=")),
    **dict.fromkeys(("bitwise_or", "__or__", "logical_or"), ("|", "|=")),
    **dict.fromkeys(("bitwise_xor", "__xor__", "logical_xor"), ("^", "^=")),
    **dict.fromkeys(("bitwise_left_shift", "__lshift__"), ("<<", "<<=")),
    **dict.fromkeys(("bitwise_right_shift", "__rshift__"), (">>", ">>=")),
    "neg": ("neg",),
    "bitwise_not": ("~",),
    "logical_not": ("~", "bool"),
    **{
        name: (sign,)
        for name, sign in (("lt", "<"), ("gt", ">"), ("le", "<="), ("ge", ">="), ("eq", "=="), ("ne", "!="))
    },
    **dict.fromkeys(("is_nonzero",), ("bool",)),
    **dict.fromkeys(("item", "_local_scalar_dense"), ("bool", "format", "[]", "[]=", "+", "-", "*", "/", "<", ">")),
    **dict.fromkeys(("select", "slice", "index", "unsqueeze", "alias", "gather", "nonzero"), ("[]", "[]=")),
    **dict.fromkeys(("copy", "fill", "index_put", "masked_fill", "zero"), ("[]=",)),
    **dict.fromkeys(("unbind",), ("iter",)),
    **dict.fromkeys(("numpy_T", "t", "transpose", "permute", "mT", "real", "imag", "detach"), ("attr",)),
}
_REVERSED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}  # `1 < x` runs `x > 1`


@cache
def kinds_of(operator: str) -> frozenset[str]:
    """The instructions that may have run an operator of that name."""
    name = operator.removeprefix("aten::")
    kinds = _KINDS.get(name) or _KINDS.get(name.removesuffix("_")) or ()
    return frozenset([*kinds, *(_REVERSED[kind] for kind in kinds if kind in _REVERSED)])
