"""The skill that comes with tracekit: what an agent has to know to use it, in the open format for agents' skills
(https://agentskills.io/specification). Its references are made of the documentation by `python -m docs.made`.
"""

from pathlib import Path

from tracekit.base.atomic import filling, reason
from tracekit.errors.asking import OtherFileError, OutputError

NAME = "tracekit"
HERE = Path(__file__).parent
FILES = ("SKILL.md", "references/findings.md", "references/cannot.md")
FOLDER = Path(".agents", "skills")  # where many clients look for the skills of a project


def text() -> str:
    """What an agent reads first."""
    return (HERE / FILES[0]).read_text(encoding="utf-8")


def install(folder: Path) -> Path:
    """Copy the skill into a folder of skills; returns its own folder there. An earlier copy is replaced, and no other
    file is. Raises OtherFileError and OutputError."""
    target = folder / NAME
    there = [target / file for file in FILES if (target / file).exists()]
    if there and not _is_ours(target / FILES[0]):
        raise OtherFileError(there[0])
    try:
        with filling(target) as half_made:
            for file in FILES:
                (half_made / file).parent.mkdir(exist_ok=True)
                (half_made / file).write_bytes((HERE / file).read_bytes())
    except OSError as error:
        raise OutputError(target, reason(error)) from None
    return target


def _is_ours(path: Path) -> bool:
    """Whether this is a version of the skill."""
    try:
        return path.read_text(encoding="utf-8").startswith(f"---\nname: {NAME}\n")
    except (OSError, UnicodeDecodeError):
        return False
