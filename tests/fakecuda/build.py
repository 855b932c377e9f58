"""Builds the fake CUDA libraries for an installed CUDA wheel of PyTorch.

A function that the wheel or Triton may ask for and that `src` does not define is generated: it ends the process and
says its name. Without their own soname and symbol versions, the wheel would not load the libraries.
"""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

SRC = Path(__file__).parent / "src"


@dataclass(frozen=True)
class Library:
    """A shared library: how its functions' names begin, its sources and the version of its symbols."""

    functions: str
    sources: tuple[str, ...] = ()
    version: str = ""
    defines: tuple[str, ...] = ()


LIBRARIES = {
    "libcuda.so.1": Library(r"cu[A-Z]", ("log.cc", "device.cc", "kernels.cc", "driver.cc")),
    "libcudart.so.13": Library(r"cuda[A-Z]|__cuda", ("runtime.cc",), "libcudart.so.13"),
    "libcupti.so.13": Library(r"cupti", ("cupti.cc",), "libcupti.so.13"),
    "libcublas.so.13": Library(r"cublas(?!Lt)", ("blas.cc",), "libcublas.so.13"),
    "libcublasLt.so.13": Library(r"cublasLt", ("blas.cc",), "libcublasLt.so.13", ("-DLT",)),
    "libcusparse.so.12": Library(r"cusparse(?!Lt)", ("sparse.cc",), "libcusparse.so.12"),
    "libcudnn.so.9": Library(r"cudnn", ("dnn.cc",), "libcudnn.so.9"),
    "libnvrtc.so.13": Library(r"nvrtc", ("nvrtc.cc",), "libnvrtc.so.13"),
    "libnccl.so.2": Library(r"nccl", ("nccl.cc",)),
    "libcufft.so.12": Library(r"cufft", version="libcufft.so.12"),
    "libcurand.so.10": Library(r"curand"),
    "libcusparseLt.so.0": Library(r"cusparseLt"),
    "libcusolver.so.12": Library(r"cusolver", version="libcusolver.so.12"),
    "libnvshmem_host.so.3": Library(r"nvshmem", version="NVSHMEM"),
    "libcufile.so.0": Library(r"cuFile"),
}
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-deprecated-declarations"]  # CUDA deprecates what torch still calls


def build(torch: Path, include: Path, out: Path) -> None:
    """Build all of them into `out`/lib, for the package in the folder `torch`, with the toolkit's headers."""
    objects, libraries = out / "obj", out / "lib"
    objects.mkdir(parents=True, exist_ok=True)
    libraries.mkdir(exist_ok=True)
    numbers = objects / "numbers.cc"
    numbers.write_text(_numbers(include))
    wanted = _wanted(torch, include)
    for soname, library in LIBRARIES.items():
        # What the device's own sources define in C++ is for the other libraries, too.
        first = soname == "libcuda.so.1"
        visibility = "default" if first else "hidden"
        flags = ["-O2", "-g1", "-fPIC", "-std=c++17", f"-fvisibility={visibility}", f"-isystem{include}", f"-I{SRC}"]
        sources = [SRC / name for name in library.sources] + ([numbers] if first else [])
        made = [objects / f"{soname}.{source.stem}.o" for source in sources]
        for source, target in zip(sources, made, strict=True):
            _run("g++", *flags, *WARNINGS, *library.defines, "-c", source, "-o", target)
        unknown = {name for name in wanted if re.match(library.functions, name)} - _defined(made)
        generated, script = objects / f"{soname}.cc", objects / f"{soname}.map"
        generated.write_text(_unknown(unknown))
        script.write_text(f"{library.version} {{ global: *; }};\n")
        scripted = [f"-Wl,--version-script={script}"] if library.version else []
        others = [] if first else [libraries / "libcuda.so.1"]
        linked = ["-shared", f"-Wl,-soname,{soname}", "-Wl,-rpath,$ORIGIN", *scripted, "-ldl", "-lpthread"]
        _run("g++", *flags, *WARNINGS, *made, generated, *others, *linked, "-o", libraries / soname)


def _wanted(torch: Path, include: Path) -> set[str]:
    """What the wheel links to, and the whole driver, whose functions are looked up by name."""
    driver = set(re.findall(r"^CUresult CUDAAPI (cu\w+)\(", (include / "cuda.h").read_text(), re.MULTILINE))
    linked = _run("nm", "-D", "--undefined-only", *sorted((torch / "lib").glob("*.so")))
    return driver | {line.split()[-1].partition("@")[0] for line in linked.splitlines() if " U " in line}


def _defined(objects: list[Path]) -> set[str]:
    lines = [line for each in objects for line in _run("nm", "--defined-only", "--extern-only", each).splitlines()]
    return {line.split()[-1] for line in lines if line}


def _unknown(names: set[str]) -> str:
    functions = [f'EXPORT void {name}() {{ fake::unknown("{name}"); }}\n' for name in sorted(names)]
    return '#include "log.h"\n' + "".join(functions)


def _numbers(include: Path) -> str:
    """The tables of CUPTI's numbers of the functions."""
    tables = []
    for domain in ("runtime", "driver"):
        header = (include / f"cupti_{domain}_cbid.h").read_text()
        pairs = re.findall(rf"CUPTI_{domain.upper()}_TRACE_CBID_(\w+)\s*=\s*(\d+)", header)
        rows = "".join(f'{{{number}, "{name}"}},\n' for name, number in pairs if name not in {"INVALID", "SIZE"})
        tables.append(f"extern const Numbered {domain}_functions[] = {{\n{rows}{{0, nullptr}}}};\n")
    return "namespace fake {\nstruct Numbered { int number; const char* name; };\n" + "".join(tables) + "}\n"


def _run(*command: str | Path) -> str:
    return subprocess.run(list(map(str, command)), check=True, text=True, stdout=subprocess.PIPE).stdout
