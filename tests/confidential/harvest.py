"""Writes the names that a confidential report may show: `python -m tests.confidential.harvest`, with torch and PyG.

They are PyTorch's and PyG's own, as the installed packages have them: operators, classes, the words of which kernels
are named, and the words of what the compiler and tracekit say.
"""

import ast
import importlib
import pkgutil
import re
import time
import warnings
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import TypeGuard

import numpy as np
import torch
import torch.nn
import torch.optim
import torch_geometric

from tests.confidential.people import PEOPLE
from tracekit.confidential.public import FILE, words

_HEADERS = ("ATen/native", "ATen/ops", "c10/cuda", "c10/core")
_SPEAKING = ("_dynamo", "_inductor", "_functorch", "_guards.py", "fx/experimental")
_OURS = [path for path in Path(__file__).parents[2].glob("tracekit/*") if path.name != "confidential" and path.is_dir()]
_PASSES = ("pre_grad_passes", "joint_graph_passes", "post_grad_passes")
_MOST = 20  # letters of a word: longer ones are no words
_IDENTIFIER = re.compile(r"[A-Za-z_]\w+")
_WORD = re.compile(r"[A-Za-z]+")


def classes() -> Iterator[str]:
    """Classes of PyTorch and PyG, and autograd's nodes, by their names alone."""
    for package in (torch.nn, torch.optim, torch.utils.data, torch.distributed, torch_geometric):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            try:
                members = vars(importlib.import_module(module.name))
            except Exception:  # it needs what is not installed
                continue
            for name, member in members.items():
                if isinstance(member, type) and member.__module__.split(".")[0] in ("torch", "torch_geometric"):
                    yield name


def operators() -> set[str]:
    """Operators, without namespaces and overloads."""
    return {name.partition("::")[2].partition(".")[0] for name in torch._C._dispatch_get_all_op_names()}


def functions() -> set[str]:
    """Functions that are built into torch."""
    owners = (torch._C, torch._C._VariableFunctions, torch._C._nn, torch._C._autograd, torch._C._distributed_c10d)
    owners += (
        torch._C._linalg,
        torch._C._dynamo.eval_frame,
        torch.Tensor,
        torch.Generator,
        torch,
        np,
        np.ndarray,
        time,
    )
    classes_in_c = [member for member in vars(torch._C).values() if isinstance(member, type)]
    return {name for owner in (*owners, *classes_in_c) for name in dir(owner) if not name.startswith("__")}


def folders() -> set[str]:
    """What is directly in the packages, as `torch/nn` and `torch/_tensor.py`."""
    packages = (Path(package.__path__[0]) for package in (torch, torch_geometric))
    return {
        f"{package.name}/{path.name}" for package in packages for path in package.iterdir() if path.name[:2] != "__"
    }


def of_headers() -> set[str]:
    """The words of identifiers in headers, whose templates name most kernels."""
    root = Path(torch.__file__).parent / "include"
    found: set[str] = set()
    for folder in _HEADERS:
        for path in (root / folder).rglob("*.*h"):
            for identifier in set(_IDENTIFIER.findall(path.read_text(errors="replace"))):
                found.update(words(identifier))
    return found


def phases() -> set[str]:
    """What the compiler calls its phases, in its own timing."""
    root, found = Path(torch.__file__).parent, set[str]()
    for name in ("_dynamo", "_inductor", "_functorch"):
        for path in (root / name).rglob("*.py"):
            text = path.read_text()
            found.update(re.findall(r'dynamo_timed\(\s*"([\w.]+)"', text))
            found.update(re.findall(r'GraphTransformObserver\([^"()]*"(\w+)"', text))
            passes = re.findall(r'GraphTransformObserver\([^"()]*"(\w+)"|subsystem="(\w+)"', text)
            found.update(f"{prefix}.{one}" for one, _ in passes for prefix in _PASSES if one)
            # A function that is timed by a decorator is called by its qualified name.
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.ClassDef):
                    found.update(f"{node.name}.{inner.name}" for inner in node.body if _is_timed(inner))
                elif _is_timed(node):
                    found.add(node.name)
    return found


def _is_timed(node: ast.AST) -> TypeGuard[ast.FunctionDef]:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return any("timed" in ast.unparse(decorator) for decorator in decorators)


def of_messages() -> set[str]:
    """The words of the texts in the compiler's code."""
    root = Path(torch.__file__).parent
    found: set[str] = set()
    for name in (*_SPEAKING, *map(str, _OURS)):
        for path in [root / name] if name.endswith(".py") else sorted((root / name).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.update(word.lower() for word in _WORD.findall(node.value))
    return found


def main() -> None:
    """Write the file, a section for each kind."""
    warnings.simplefilter("ignore")
    known = set(classes())
    of_kernels = of_headers().union(*map(words, (*operators(), *functions(), *known)))
    sections = {"classes": known, "operators": operators(), "functions": functions(), "folders": folders()}
    sections |= {"phases": phases()}
    sections |= {"kernel words": of_kernels - PEOPLE, "message words": of_messages() - PEOPLE}
    lines = [f"# Made by tests.confidential.harvest with torch {torch.__version__}, PyG {torch_geometric.__version__}."]
    for title, names in sections.items():
        lines += [f"[{title}]", " ".join(sorted(name for name in names if title[-5:] != "words" or len(name) <= _MOST))]
    Path(str(files("tracekit.confidential").joinpath(FILE))).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
