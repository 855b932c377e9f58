"""Installs what tracekit needs besides PyTorch, on a machine that lacks it and has no network."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

_NEEDED = ("torch", "torch_geometric", "scipy", "msgspec", "isal", "platformdirs", "numpy", "pyarrow", "rich")


def paths(root: Path, folder: Path, wheels: Path | None) -> list[str]:
    """The folders in which modules are searched for: this one, the unpacked wheels, and those of the present path."""
    site = folder / "site"
    if wheels is not None and not site.exists():
        _unpack(wheels, site)
    elif wheels is None:
        _say_what_is_missing()
    before = os.environ.get("PYTHONPATH")
    return [str(root), *([str(site)] if wheels is not None else []), *([before] if before else [])]


def _unpack(wheels: Path, site: Path) -> None:
    """Unpack only what the machine lacks: above all, its own PyTorch is the one to examine."""
    missing = {name.replace("_", "-") for name in _missing()}
    chosen = [str(each) for each in sorted(wheels.glob("*.whl")) if _distribution(each) in missing]
    left = missing - {_distribution(Path(each)) for each in chosen}
    if left:
        sys.exit(f"missing here, and no wheel of it in {wheels}: {', '.join(sorted(left))}")
    if chosen:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(site)]
        subprocess.run([*command, *chosen], check=True)


def _missing() -> list[str]:
    return [name for name in _NEEDED if importlib.util.find_spec(name) is None]


def _distribution(wheel: Path) -> str:
    return wheel.name.partition("-")[0].lower().replace("_", "-")


def _say_what_is_missing() -> None:
    if missing := _missing():
        sys.exit(f"missing here: {', '.join(missing)}. Give a folder with its wheels: --wheels FOLDER")
