"""The colours of source code: which letters of each line are keywords, strings, numbers, comments or names."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType

CODE = ("keyword", "string", "number", "comment", "name")  # the kinds of part that have a colour
Part = tuple[int, str]  # where a part of a line begins, and its kind; that of others is empty
MOST = 20_000  # lines of a file: more would take longer than a second
_KINDS: tuple[tuple[_TokenType, str], ...] = (
    (Keyword, "keyword"),
    (Operator.Word, "keyword"),
    (String, "string"),
    (Number, "number"),
    (Comment, "comment"),
    (Name.Function, "name"),
    (Name.Class, "name"),
    (Name.Decorator, "name"),
)


@lru_cache(maxsize=4)
def parts(lines: tuple[str, ...]) -> list[list[Part]]:
    """The parts of each line of a Python file, from the first letter on; none of a file that is too long."""
    of_lines: list[list[Part]] = [[] for _ in lines]
    line_index, column = 0, 0
    lexer = PythonLexer(stripnl=False, ensurenl=False)
    for token, text in lexer.get_tokens("\n".join(lines)) if len(lines) <= MOST else ():
        kind = next((kind for token_type, kind in _KINDS if token in token_type), "")
        for piece in text.splitlines(keepends=True):
            if line_index < len(lines):
                of_lines[line_index].append((column, kind))
            column += len(piece)
            if piece.endswith("\n"):
                line_index, column = line_index + 1, 0
    return of_lines


def pieces(text: str, line_parts: Sequence[Part]) -> list[tuple[str, str]]:
    """A text of one line, or as much of it as fits, divided into its parts."""
    starts = [*line_parts, (len(text), "")] if line_parts else [(0, ""), (len(text), "")]
    return [(text[start:end], kind) for (start, kind), (end, _) in pairwise(starts) if text[start:end]]
