"""tlparse, by Meta: the compiler's log as pages of HTML, an artefact of each compilation in each."""

from pathlib import Path

from tests.compare.peer import Peer


def _command(python: Path, logs: list[Path], output: Path) -> list[str]:
    tool = str(python.parent / "tlparse")
    return [tool, str(logs[0]), "-o", str(output), "--overwrite", "--no-browser"]


PEER = Peer("tlparse", "tlparse", "tlparse", ("tlparse==0.4.3",), command=_command)
