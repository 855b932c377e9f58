"""Empty CUDA libraries, so that a CUDA wheel of PyTorch can be imported without the gigabytes of NVIDIA's packages.

PyPI has no CPU builds of PyTorch for Linux. What its CUDA build links to and is not there is generated: libraries with
the right names and symbol versions, in which every function returns `cudaErrorNoDevice`. To PyTorch, the machine has no
GPU, which is true.
"""

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

_NO_DEVICE = 100
_OF_CUDA = re.compile(
    r"cu[A-Z]|cuda[A-Z]|__cuda|cu(blas|sparse|solver|fft|rand|dnn|pti|File)|nccl|nv(rtc|shmem|JitLink|ToolsExt|tx)"
)


def build(torch: Path, out: Path) -> None:
    """Build what the installed package in the folder `torch` links to and does not find, into the folder `out`."""
    out.mkdir(parents=True, exist_ok=True)
    binaries = [path for path in sorted((torch / "lib").glob("*.so*")) if path.is_file()]
    missing = {soname for binary in binaries for soname in _not_found(binary)}
    of_library: dict[str, dict[str, set[str]]] = {soname: defaultdict(set) for soname in missing}
    for binary in binaries:
        for name, version, soname in _undefined(binary):
            if soname in missing:
                of_library[soname][version].add(name)
            elif not soname and _OF_CUDA.match(name):
                for versions in of_library.values():  # which of them defines it is not written down
                    versions[""].add(name)
    for soname, versions in of_library.items():
        _link(out, soname, versions)


def _not_found(binary: Path) -> list[str]:
    return re.findall(r"^\s*(\S+) => not found", _run("ldd", binary), re.MULTILINE)


def _undefined(binary: Path) -> Iterator[tuple[str, str, str]]:
    """What the binary takes from elsewhere: its name, the version it wants, and the library that has this version."""
    needs = _run("readelf", "--version-info", "--wide", binary)
    files: dict[str, str] = {}
    soname = ""
    for line in needs.splitlines():
        if found := re.search(r"File: (\S+)", line):
            soname = found[1]
        elif found := re.search(r"Name: (\S+) ", line):
            files[found[1]] = soname
    for line in _run("readelf", "--dyn-syms", "--wide", binary).splitlines():
        if found := re.search(r" UND (\w+)(?:@(\S+))?", line):
            version = found[2] or ""
            yield found[1], version, files.get(version, "")


def _link(out: Path, soname: str, versions: dict[str, set[str]]) -> None:
    versioned = {name for version, names in versions.items() if version for name in names}
    functions = versioned | versions.get("", set())
    code = "".join(f"int {name}(void) {{ return {_NO_DEVICE}; }}\n" for name in sorted(functions))
    script = "".join(
        f"{version} {{ global: {'; '.join(sorted(names))}; }};\n" for version, names in versions.items() if version
    )
    (out / "code.c").write_text(code)
    (out / "versions.map").write_text(script)
    flags = ["-Wl,--version-script=" + str(out / "versions.map")] if script else []
    _run(
        "gcc",
        "-shared",
        "-fPIC",
        "-w",
        "-fno-builtin",
        out / "code.c",
        f"-Wl,-soname,{soname}",
        *flags,
        "-o",
        out / soname,
    )


def _run(*command: str | Path) -> str:
    return subprocess.run(list(map(str, command)), check=True, text=True, stdout=subprocess.PIPE).stdout
