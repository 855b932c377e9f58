"""Sentences and messages: of the compiler, of exceptions, and tracekit's own about a run. Words that PyTorch's compiler
or tracekit writes stay; names, paths, addresses and all other words get stand-ins.
"""

import re

from tracekit.confidential import public
from tracekit.confidential.places import Places
from tracekit.confidential.stand_ins import StandIns
from tracekit.vocabulary.code_owner import profiled

_TOKENS = re.compile(
    r"""(?P<stacked>File\ "(?P<file>[^"\n]+)",\ line\ (?P<line>\d+),\ in\ (?P<function>\S+))
    |(?P<key>\[(?P<quote>['"])(?P<subscript>[^'"\n]*)(?P=quote)\])
    |(?P<address>0x[0-9a-fA-F]+)
    |(?P<path>(?:[A-Za-z]:)?[\w.~+@%=:-]*[/\\][^\s'"`,;()\[\]<>]*|[\w.+-]+\.(?:py|pyx|ipynb|cpp|cu|json|gz|pt|toml|yaml|sh)\b)
    |(?P<dotted>[^\W\d]\w*(?:\.[^\W\d]\w*)+)
    |(?P<word>[^\W]*[^\W\d][^\W]*)""",
    re.VERBOSE,
)
_LINE = re.compile(r"(.+?)(:\d+)?(:\d+)?([.:]*)", re.DOTALL)
_SOURCES = {"L", "G", "self", "size", "stride", "shape", "dtype", "device", "grad", "requires_grad", "default", "item"}
_TYPES = re.compile(r"(?:b?float|u?int|complex|bool|float8_e\dm\d\w*|f|i|u|s)\d*|cuda|cpu|nan|inf|e")
_ROOTS = ("aten", "torch", "prims", "inductor", "torch_geometric", "c10d")


class Prose:
    """Stand-ins in texts."""

    def __init__(self, stand_ins: StandIns, places: Places) -> None:
        self._stand_ins, self._places = stand_ins, places

    def of(self, text: str) -> str:
        """The text without its secrets."""
        return _TOKENS.sub(self._token, text)

    def place(self, text: str) -> str:
        """`file-1.py:12 function-3` for `model.py:12 score`: the place of a function."""
        shape = re.fullmatch(r"(.+):(\d+) (\S+)", text, re.DOTALL)
        if shape is None:
            frame = profiled(text)
            if frame is None:
                return self.of(text)
            return f"{self._places.path(frame.file)}({frame.line}): {self._places.function(frame.file, frame.function)}"
        return f"{self._places.path(shape[1])}:{shape[2]} {self._places.function(shape[1], shape[3])}"

    def stack(self, stack: str) -> str:
        """The frames of a stack, without the lines of source between them."""
        frames = [line.strip() for line in stack.split("\n") if line.lstrip().startswith('File "')]
        return "".join(f"  {self.of(frame)}\n" for frame in frames)

    def _token(self, found: re.Match[str]) -> str:
        kind = found.lastgroup
        if found["stacked"]:
            file, function = found["file"], found["function"]
            shown = self._places.function(file, function)
            return f'File "{self._places.path(file)}", line {found["line"]}, in {shown}'
        if found["key"]:
            inner = found["subscript"]
            is_known = inner in ("lr", "betas", "momentum", "params", "weight", "bias") or not re.search(
                r"[^\W\d]", inner
            )
            quote = found["quote"]
            return f"[{quote}{inner if is_known else self._stand_ins.identifier('name', inner)}{quote}]"
        if kind == "address":
            return self._stand_ins.of("address", found[0])
        if kind == "path":
            shape = _LINE.fullmatch(found[0])
            path = shape[1] if shape else found[0]
            if re.fullmatch(r"[\d./]+", path) or path.lower() in ("and/or", "i/o", "n/a"):
                return found[0]
            return f"{self._places.path(path)}{found[0][len(path) :]}"
        if kind == "dotted":
            return self._dotted(found[0])
        if found.string[found.start() - 1 : found.start()] == ".":  # an attribute of what stands in brackets before it
            return found[0] if found[0] in _SOURCES else self._stand_ins.identifier("name", found[0])
        return self.word(found[0])

    def _dotted(self, chain: str) -> str:
        parts = chain.split(".")
        if parts[0] in _ROOTS and all(map(public.is_of_libraries, parts)):
            return chain
        return ".".join(part if part in _SOURCES else self._stand_ins.identifier("name", part) for part in parts)

    def word(self, word: str) -> str:
        """The word, if the compiler or tracekit uses it."""
        parts = word.strip("_").split("_")
        known = public.names("message words")
        if word.isascii() and all(not part or part.lower() in known or _TYPES.fullmatch(part) for part in parts):
            return word
        return word if public.is_class(word) or word in _SOURCES else self._stand_ins.of("name", word)
