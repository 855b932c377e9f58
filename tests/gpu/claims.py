"""PASS and FAIL, one line each."""

import importlib
import traceback
from pathlib import Path
from typing import Any

from tests.gpu.sections import Section


class Claims:
    """What a section claims, where it leaves its traces, and on which device it runs."""

    def __init__(self, folder: Path, device: str) -> None:
        self.folder, self.device, self.failed = folder, device, 0

    @property
    def on_gpu(self) -> bool:
        """Whether there is a GPU to look at."""
        return self.device == "cuda"

    def seconds(self, on_gpu: int) -> int:
        """As long as something may take: on a CPU, which has other work, ten times as long."""
        return on_gpu if self.on_gpu else 10 * on_gpu

    def that(self, holds: object, what: str, **seen: Any) -> None:
        """One claim, with what was seen."""
        self.failed += not holds
        figures = "".join(f"  {name}={value}" for name, value in seen.items())
        print(f"{'PASS' if holds else 'FAIL'} {what}{figures}", flush=True)

    def skip(self, what: str) -> None:
        """No time, or no way: claims nothing."""
        print(f"SKIP {what}", flush=True)

    def note(self, text: str) -> None:
        """Something worth knowing that claims nothing."""
        print(f"     {text}", flush=True)

    def run(self, section: Section) -> None:
        """All of that section; whatever it raises is a failure."""
        try:
            importlib.import_module(f"tests.gpu.{section.name}").check(self)
        except Exception:
            traceback.print_exc()
            self.that(False, f"{section.name} came to its end")


def near(value: float, wanted: float, relative: float, absolute: float = 0.0) -> bool:
    """Whether it is as close as that."""
    return abs(value - wanted) <= max(relative * abs(wanted), absolute)
