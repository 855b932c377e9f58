"""Which code would be compiled? While it runs, a size or a value that is read from the data would break the graph.

It is whatever the script passes to torch.compile or, if the script compiles nothing, its outermost module.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


class Regions:
    """How deeply calls of code that would be compiled are nested: `depth`, 0 outside of such code."""

    def __init__(self) -> None:
        self.depth = 0
        self.compiles = False  # something was given to torch.compile

    def compile(self, model: Any = None, *_: Any, **options: Any) -> Any:
        """Stands in for torch.compile: what it returns runs eagerly, and its calls count as regions."""
        if options.get("disable"):
            return model
        if model is None:
            return self.compile
        self.compiles = True
        if isinstance(model, torch.nn.Module):
            return _Compiled(model, self)
        return self.around(model)

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The function, each call of which counts as a region."""

        @functools.wraps(call)
        def compiled(*args: Any, **kwargs: Any) -> Any:
            with self.entered():
                return call(*args, **kwargs)

        return compiled

    @contextmanager
    def entered(self) -> Iterator[None]:
        """A context that counts as a region."""
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def call_module(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Stands in for `Module.__call__`: the outermost call is a region if the script compiles nothing."""

        def calling(module: Any, *args: Any, **kwargs: Any) -> Any:
            if self.compiles or self.depth:
                return call(module, *args, **kwargs)
            with self.entered():
                return call(module, *args, **kwargs)

        return calling


class _Compiled(torch.nn.Module):  # type: ignore[misc]
    """Like the module that torch.compile returns: all but the call is passed on to the original module."""

    def __init__(self, module: torch.nn.Module, regions: Regions) -> None:
        super().__init__()
        self._orig_mod = module
        object.__setattr__(self, "_regions", regions)

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return super().__getattr__(name)
        return getattr(self._orig_mod, name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module; the call counts as a region."""
        with self._regions.entered():
            return self._orig_mod(*args, **kwargs)
