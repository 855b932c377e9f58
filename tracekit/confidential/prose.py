"""Sentences and messages: of the compiler, of exceptions, and tracekit's own about a run. Words that PyTorch's compiler
or tracekit writes stay; names, paths, addresses and all other words get stand-ins.
"""

import re

from tracekit.confidential import public
from tracekit.confidential.places import Places
from tracekit.confidential.stand_ins import StandIns
from tracekit.vocabulary.code_owner import profiled

_TOKENS = re.compile(
    r"""(?P<stacked>File\ "(?P<file>[^"\n]+)",\ line\ (?P<line>\d+),\ in\ (?P<function>\S+)
        (?:\n[ \t]+(?!File\ "|[ \t])[^\n]*)*)  # with the lines of source below it
    |(?P<source>(?<!\S)\#\ (?!\S+:\d+\ in\ )[^\n]*?(?=\s+\#\ |\n|$))  # by which Dynamo explains a guard
    |(?P<key>\[(?P<quote>['"])(?P<subscript>[^'"\n]*)(?P=quote)\])
    |(?<![\w\]])(?P<mark>['"])(?P<quoted>[^'"\n\[\]]+)(?P=mark)
    |(?P<address>0x[0-9a-fA-F]+
        |(?<![\w.:\[])(?:(?:\d{1,3}\.){3}\d{1,3}|(?:[0-9a-fA-F]{1,4}::?){2,7}[0-9a-fA-F]{1,4}|\d{13,}
        |[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})(?!\.?\w))
    |(?P<number>(?<![\w.])\d+(?:\.\d+)*(?:[eE][-+]?\d+)?(?!\w))
    |(?P<path>(?:[A-Za-z]:)?[\w.~+@%=:-]*[/\\][^\s'"`,;()\[\]<>]*|[\w.+-]+\.(?:py|pyx|ipynb|cpp|cu|json|gz|pt|toml|yaml|sh)\b)
    |(?P<host>[\w.+-]+@[\w.-]+|(?<!\w)[^\W\d][\w-]*(?:\.[\w-]+)*:\d{4,5}\b
        |(?=[\w-]*\d)[^\W\d]\w*(?:-\w+)+|(?=[\w.]*-)[^\W\d][\w-]*(?:\.[\w-]+)+)
    |(?P<option>(?<!\S)--?[A-Za-z][\w-]*(?:[=\ ](?![-(])[^\s,;)]+)?)  # of a command line, with its value
    |(?P<dotted>[^\W\d]\w*(?:\.[^\W\d]\w*)+)
    |(?P<word>[^\W]*[^\W\d][^\W]*)""",
    re.VERBOSE,
)
# Before a value of the user's, which is hidden even where it is a word that the compiler uses.
_BEFORE_VALUES = ("== ", "!= ", "Error: ")
_LINE = re.compile(r"(.+?)(:\d+)?(:\d+)?([.:]*)", re.DOTALL)
_SOURCES = {"L", "G", "self", "size", "stride", "shape", "dtype", "device", "grad", "requires_grad", "default", "item"}
_TYPES = re.compile(r"(?:b?float|u?int|complex|bool|float8_e\dm\d\w*|f|i|u|s)\d{0,3}|cuda|cpu|nan|inf|e")
# In tracekit's sentences about files that cannot be read.
_OURS = re.compile(r"tracekit\.(?:run|watch)(?:/\d+)?|prof\.export_chrome_trace|'trace\.json\.gz'")
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
        if _OURS.fullmatch(found[0]):
            return found[0]
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
        if found["mark"]:
            return f"{found['mark']}{self._quoted(found)}{found['mark']}"
        if kind == "source":
            return "# …"
        if kind == "number":
            return found[0]
        if kind in ("address", "host", "option"):
            return found[0] if self._stand_ins.has(found[0]) else self._stand_ins.of(kind, found[0])
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

    def _quoted(self, found: re.Match[str]) -> str:
        """What stands in quotation marks: a path may have spaces there, and several words are a text of the user's."""
        text = found["quoted"]
        if re.search(r"[/\\]", text):
            return self._places.path(text)
        if " " in text or found.string.endswith(_BEFORE_VALUES, 0, found.start()):
            return self._stand_ins.identifier("name", text)
        return self.of(text)

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
