"""Which edge type does a module serve? PyG gives each type a module of its own, whose path contains the type."""

import re
from collections.abc import Mapping, Sequence

_HETERO_CONV = re.compile(r"<(.+?)___(.+?)___(.+?)>")  # convs.<user___rates___movie>
_TO_HETERO = re.compile(r"[^_].*?__[^_].*?__[^_].*")  # conv.user__rates__movie


def edge_type_of(chain: Sequence[str], paths: Mapping[str, str]) -> str | None:
    """`user__rates__movie`, for the modules around a moment, as the trace numbers them; None if there is none."""
    for module in chain:
        for part in paths.get(module, "").split("."):
            if match := _HETERO_CONV.fullmatch(part):
                return "__".join(match.groups())
            if _TO_HETERO.fullmatch(part):
                return part
    return None
