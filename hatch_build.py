"""Builds what is written in C where there is a compiler; without one, the package installs without it. Makes the
description of the package from the README.

TRACEKIT_NATIVE=0 leaves out what is written in C, for a wheel that suits every machine; with 1, a failure to build it
is an error. TRACEKIT_SOURCE is the address of the repository on GitHub, to which links of the description then lead.
"""

import os
import re
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

NATIVE = os.environ.get("TRACEKIT_NATIVE", "")
# Which a wheel for the stable ABI does not suit: threads without a lock have another, and other Pythons have none.
HAS_STABLE_ABI = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
# The source's name, its folder.
MODULES = {"scan": "tracekit/trace/reading/native"} | dict.fromkeys(("loops", "levels", "marks"), "tracekit/native")
if sys.platform == "linux" and sys.byteorder == "little":
    MODULES["steps"] = "tracekit/native"
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)]+)\)")  # to a file, which an index does not have


class NativeHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the compiled modules to a wheel; an editable installation finds them beside their sources."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before anything is packed."""
        if self.target_name != "wheel" or NATIVE == "0" or not HAS_STABLE_ABI or not (built := self._built()):
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
        build_data["artifacts"] += built

    def _built(self) -> list[str]:
        """The paths of the compiled modules in the project, without those that cannot be compiled."""
        from setuptools import Distribution, Extension
        from setuptools.command.build_ext import build_ext

        modules = [
            Extension(
                f"{folder.replace('/', '.')}._{name}",
                [str(Path(self.root, folder, f"{name}.c"))],
                py_limited_api=True,
                optional=NATIVE != "1",
            )
            for name, folder in MODULES.items()
        ]
        command = build_ext(Distribution({"ext_modules": modules}))
        command.build_lib = self.root
        try:
            with TemporaryDirectory() as command.build_temp:
                command.ensure_finalized()
                command.run()
        except Exception as error:  # there is no compiler, or it fails: nothing needs the modules
            if NATIVE == "1":
                raise
            print(f"tracekit is installed without what is written in C: {error}", file=sys.stderr)
        return [path for name, folder in MODULES.items() if (path := self._newest(name, folder))]

    def _newest(self, name: str, folder: str) -> str | None:
        built = [path for path in Path(self.root, folder).glob(f"_{name}.*") if path.suffix in (".so", ".pyd")]
        return f"{folder}/{max(built, key=lambda path: path.stat().st_mtime).name}" if built else None


class DescriptionHook(MetadataHookInterface):
    """Sets the description, and where the source is if that is known."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the fields that pyproject.toml calls dynamic."""
        source = os.environ.get("TRACEKIT_SOURCE", "")
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        text = linked(readme, source, f"v{metadata['version']}") if source else named(readme)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        if source:
            metadata["urls"] = {"Source": source}


def linked(readme: str, source: str, tag: str) -> str:
    """The README, whose links lead to the repository."""
    kinds = {"!": "raw", "": "blob"}  # GitHub shows a file, and serves a picture
    return LINK.sub(lambda link: f"{link[1]}[{link[2]}]({source}/{kinds[link[1]]}/{tag}/{link[3]})", readme)


def named(readme: str) -> str:
    """The README without pictures, and with the names of files in place of links."""

    def name(link: re.Match[str]) -> str:
        picture, text, path = link.groups()
        if picture:
            return ""
        return text if text == path else f"{text} [`{path}`]"

    return f"{LINK.sub(name, readme)}\nThe files named in brackets are in the source distribution.\n"
