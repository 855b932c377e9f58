"""The code that torch.compile would compile: while it runs, a size or a value from the data breaks its graph.

It is whatever the script passes to torch.compile or, if it compiles nothing, its outermost modules that have
parameters. What a DataLoader calls, such as a transform, is no part of the model.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from tracekit.capture.audit.watch import Watch


class Regions:
    """Tracks whether, and how deep, execution is in code that would be compiled."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.depth = 0
        self.compiles = False  # whether anything was passed to torch.compile

    def compile(self, model: Any = None, *_: Any, **options: Any) -> Any:
        """Replaces torch.compile: the same code, run eagerly and marked as a region."""
        if options.get("disable"):
            return model
        if model is None:
            return self.compile
        self.compiles = True
        if isinstance(model, torch.nn.Module):
            return _Compiled(model, self)
        return self.around(model)

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with each call as a region."""

        @functools.wraps(call)
        def compiled(*args: Any, **kwargs: Any) -> Any:
            with self.entered():
                return call(*args, **kwargs)

        return compiled

    @contextmanager
    def entered(self) -> Iterator[None]:
        """A context that counts as compiled code."""
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def call_module(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Replaces `Module.__call__`: if the script compiles nothing, an outermost module with parameters is a region,
        as it is compiled in place in a capture."""

        def calling(module: Any, *args: Any, **kwargs: Any) -> Any:
            if self.compiles or self.depth or self._watch.loading or next(module.parameters(), None) is None:
                return call(module, *args, **kwargs)
            with self.entered():
                return call(module, *args, **kwargs)

        return calling


def loading(watch: Watch, following: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Replaces `__next__` of a DataLoader's iterator: what happens meanwhile belongs to the loader."""

    def next_batch(iterator: Any) -> Any:
        before, watch.loading = watch.loading, True
        try:
            return following(iterator)
        finally:
            watch.loading = before

    return next_batch


class _Compiled(torch.nn.Module):  # type: ignore[misc]
    """Like torch.compile's wrapper: everything except the call is delegated to the module."""

    def __init__(self, module: torch.nn.Module, regions: Regions) -> None:
        super().__init__()
        self._orig_mod = module
        object.__setattr__(self, "_regions", regions)

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return super().__getattr__(name)
        return getattr(self._orig_mod, name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module in the region."""
        with self._regions.entered():
            return self._orig_mod(*args, **kwargs)
