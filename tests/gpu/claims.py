"""PASS and FAIL, one line each."""

import importlib
import os
import traceback
from pathlib import Path
from typing import Any

from tests.gpu.sections import Section


class Claims:
    """The claims of a section, the folder of its traces, the device on which it runs, and the recipes that are wanted
    (none given: all)."""

    def __init__(self, folder: Path, device: str, recipes: tuple[str, ...] = ()) -> None:
        self.folder, self.device, self.recipes, self.failed = folder, device, recipes, 0

    @property
    def on_gpu(self) -> bool:
        """Whether there is a GPU to examine."""
        return self.device == "cuda"

    def seconds(self, on_gpu: int) -> int:
        """How long something may take: ten times as long on a CPU, which has other work to do."""
        return on_gpu if self.on_gpu else 10 * on_gpu

    def that(self, holds: object, what: str, **seen: Any) -> None:
        """Make one claim, and say what was observed."""
        self.failed += not holds
        figures = "".join(f"  {name}={value}" for name, value in seen.items())
        print(f"{'PASS' if holds else 'FAIL'} {what}{figures}", flush=True)

    def timed(self, holds: object, what: str, **seen: Any) -> None:
        """Make a claim about time, which no fake GPU on a busy machine keeps."""
        if os.environ.get("FAKECUDA"):
            self.skip(what)
        else:
            self.that(holds, what, **seen)

    def skip(self, what: str) -> None:
        """Claim nothing, because there is no time or no way to check."""
        print(f"SKIP {what}", flush=True)

    def note(self, text: str) -> None:
        """Print something worth knowing that is no claim."""
        print(f"     {text}", flush=True)

    def run(self, section: Section) -> None:
        """Run a whole section; any exception is a failure."""
        try:
            importlib.import_module(f"tests.gpu.{section.name}").check(self)
        except Exception:
            traceback.print_exc()
            self.that(False, f"{section.name} came to its end")


def near(value: float, wanted: float, relative: float, absolute: float = 0.0) -> bool:
    """Whether two values are that close."""
    return abs(value - wanted) <= max(relative * abs(wanted), absolute)
