"""The scripts and what is expected of them: `tests/scripts/scripts.toml`."""

import shlex
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parents[1] / "scripts"


@dataclass(frozen=True)
class Script:
    """One script: how it is called, how it is made to compile, and what a plain run of it compiles."""

    name: str
    form: str
    arguments: str = ""
    module: str = ""  # run with -m, instead of as a file
    compile: str = "itself"  # a flag, "itself" or "never"
    backend: str = "aot_eager"
    counts: str = "0/0/0"  # graphs, recompiles and breaks of the plain compiled run
    ledger: str = ""  # these in the capture, where the program compiles more after the steps that are traced
    capture: str = ""  # further options of tracekit capture
    variants: tuple[str, ...] = ("eager", "compiled")
    needs: tuple[str, ...] = ()  # libraries
    says: str = ""  # part of a sentence that the capture prints about it
    refused: str = ""  # part of the sentence with which the capture refuses it
    compares_pace: bool = True
    ci: bool = False
    xfail: str = ""
    environment: dict[str, str] = field(default_factory=dict)

    def command(self) -> list[str]:
        """What follows `python` on the command line, without the script's arguments."""
        return ["-m", self.module] if self.module else [f"{self.name}.py"]

    def given(self, compiled: bool) -> list[str]:
        """The script's own arguments."""
        flags = [self.compile] if compiled and self.compile.startswith("-") else []
        return [*shlex.split(self.arguments), *flags]

    def settings(self, compiled: bool) -> dict[str, str]:
        """Environment variables: one of torch's makes a script that compiles by itself run eagerly."""
        off = {"TORCHDYNAMO_DISABLE": "1"} if self.compile == "itself" and not compiled else {}
        return {**self.environment, **off}


def read() -> dict[str, Script]:
    """All scripts, in the order of the file."""
    tables = tomllib.loads((HERE / "scripts.toml").read_text())
    return {name: Script(name, **_frozen(table)) for name, table in tables.items()}


def _frozen(table: dict[str, object]) -> dict[str, object]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
