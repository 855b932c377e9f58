"""The modules in C, built by clang with sanitizers of addresses and undefined behaviour and counters of edges, and put
in the place of those that were installed. Without clang, these are fuzzed as they are.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_MODULES = {
    "tracekit.trace.reading.native._scan": "scan.c",
    "tracekit.native._loops": "loops.c",
    "tracekit.native._levels": "levels.c",
}
_FLAGS = (
    *("-fsanitize=fuzzer-no-link,address,undefined", "-fno-sanitize-recover=undefined"),
    *("-O1", "-g", "-shared", "-fPIC"),
)
_FOLDER = "TRACEKIT_FUZZ_NATIVE"


def environment(folder: Path, sanitize: bool) -> dict[str, str]:
    """The variables of a process that fuzzes; with `sanitize`, the modules are built into the folder, and it uses them
    if clang is here."""
    variables = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests"))),
        "TRACEKIT_CACHE_DIR": str(folder / "cache"),
    }
    clang = shutil.which(os.environ.get("CLANG", "clang"))
    if not sanitize or clang is None:
        return variables
    built = folder / "native"
    built.mkdir(parents=True, exist_ok=True)
    for module, source in _MODULES.items():
        path = ROOT.joinpath(*module.split(".")[:-1], source)
        include = sysconfig.get_path("include")
        subprocess.run([clang, *_FLAGS, f"-I{include}", str(path), "-o", str(built / f"{module}.so")], check=True)
    atheris = importlib.util.find_spec("atheris")
    assert atheris is not None
    assert atheris.origin is not None
    return variables | {
        _FOLDER: str(built),
        "LD_PRELOAD": str(Path(atheris.origin).parents[1] / "asan_with_fuzzer.so"),
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "PYTHONMALLOC": "malloc",  # so that what Python allocates has bounds, too
    }


def load() -> bool:
    """Put the modules that were built in the place of the installed ones, before tracekit is imported. Returns whether
    there are any."""
    if _FOLDER not in os.environ:
        return False
    for name in _MODULES:
        spec = importlib.util.spec_from_file_location(name, Path(os.environ[_FOLDER], f"{name}.so"))
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return True
