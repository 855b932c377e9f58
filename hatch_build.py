"""Builds the scanner of traces where there is a compiler; without one, the package installs without it."""

import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER, NAME = "tracekit/trace/reading/native", "_scan"


class NativeHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the compiled module to a wheel; an editable installation finds it beside its source."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before anything is packed."""
        if self.target_name != "wheel" or (built := self._built()) is None:
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
        build_data["artifacts"].append(built)

    def _built(self) -> str | None:
        """The path of the compiled module in the project; None if it cannot be compiled."""
        from setuptools import Distribution, Extension
        from setuptools.command.build_ext import build_ext

        folder = Path(self.root, FOLDER)
        module = Extension(
            f"{FOLDER.replace('/', '.')}.{NAME}", [str(folder / "scan.c")], py_limited_api=True, optional=True
        )
        command = build_ext(Distribution({"ext_modules": [module]}))
        command.build_lib, command.build_temp = self.root, str(Path(self.directory, "scan"))
        command.ensure_finalized()
        try:
            command.run()
        except Exception as error:  # there is no compiler, or it fails: nothing needs the module
            print(f"tracekit is installed without its scanner: {error}", file=sys.stderr)
        built = [path for path in folder.glob(f"{NAME}.*") if path.suffix in (".so", ".pyd")]
        return f"{FOLDER}/{max(built, key=lambda path: path.stat().st_mtime).name}" if built else None
