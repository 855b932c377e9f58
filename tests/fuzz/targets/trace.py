"""A Kineto trace, plain or packed, from its bytes to the findings and through every face and verb that reads one."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.fuzz import seeds as known
from tests.fuzz import verbs
from tests.fuzz.seeds import WORDS
from tests.fuzz.targets import changed_json, changed_packed, written

# The first byte of an input chooses one of these: the verb with its options, and the name of the output.
COMMANDS: tuple[tuple[tuple[str, ...], str | None], ...] = (
    (("report", "--full"), None),
    *((("report", "--full", "--format", name), f"report.{name}") for name in ("html", "json", "markdown", "latex")),
    (("report", "--format", "csv"), "tables"),
    (("report", "--format", "xlsx"), "report.xlsx"),
    (("report", "--format", "perfetto"), "timeline"),
    (("report", "--no-ranks", "--steps", "annotated"), None),
    (("explain", "--budget-tokens", "4000"), None),
    (("export",), "tables"),
    (("plot", "--kind", "steps"), "chart.svg"),
    (("plot", "--kind", "attribution"), "chart.svg"),
    (("lines",), None),
    (("lines", "--view", "host", "--format", "json"), None),
    (("what-if",), None),
)


def seeds() -> Iterator[bytes]:
    for number, document in enumerate(known.traces()):
        yield bytes([number % len(COMMANDS)]) + written(document)


def change(data: bytes, random: Random) -> bytes:
    result = changed_packed(data[1:], random, lambda content, random: changed_json(content, random, WORDS))
    command = random.randrange(len(COMMANDS)) if random.random() < 0.1 else data[0] if data else 0
    return bytes([command]) + result


def take(data: bytes, folder: Path) -> None:
    if not data:
        return
    (verb, *options), output = COMMANDS[data[0] % len(COMMANDS)]
    path = folder / "trace.json"
    path.write_bytes(data[1:])
    verbs.run(verb, str(path), *options, "--no-cache", output=None if output is None else folder / output)
