"""The selection: immutable, narrowed by Enter and widened by Esc. Every pane is a query of it."""

from pathlib import PurePath
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from tracekit.engine.buckets import ON_THE_GPU

Kind = Literal[
    "variant",
    "steps",
    "bucket",
    "finding",
    "kernel",
    "operator",
    "module",
    "line",
    "phase",
    "library",
    "event",
    "moment",
    "window",
]
HOME = "overview"
NO_LINE = ("", 0)


class Facet(Struct, frozen=True):
    """One narrowing. `value` is what queries compare, `label` what the breadcrumb says, `since` the pane it began in.

    The value depends on the kind: a variant's name; the first and the last step (both included); a bucket's key; a
    variant and an index into its list of findings; a name; a chain of modules, empty for none; file and line, or
    `NO_LINE`; a phase; a library, empty for none; a variant and a row of its events table; a variant and one moment, or
    two, on its clock, in ns.
    """

    kind: Kind
    value: Any
    label: str
    since: str


class Selection(Struct, frozen=True):
    """The pane that is shown, the view (`wall` or `host`), and the narrowings, in the order in which they were made."""

    pane: str = HOME
    view: str = "wall"
    facets: tuple[Facet, ...] = ()

    def of(self, kind: Kind) -> Any:
        """The value of that kind; None if none was chosen."""
        return next((facet.value for facet in self.facets if facet.kind == kind), None)

    @property
    def is_of_host(self) -> bool:
        """Whether a bucket of the host is selected, and not one of the GPU."""
        return self.of("bucket") not in (None, *ON_THE_GPU)

    def narrowed(self, kind: Kind, value: Any, label: str, pane: str | None = None) -> "Selection":
        """Narrowed to this as well, which replaces an earlier facet of the same kind, and shown in that pane."""
        facet = Facet(kind, value, label, self.pane)
        return replace(self, facets=(*self.without(kind).facets, facet), pane=pane or self.pane)

    def to_line(self, file: str, line: int, pane: str | None = "source") -> "Selection":
        """Narrowed to a line of the user's, and shown in that pane."""
        return self.narrowed("line", (file, line), f"{PurePath(file).name}:{line}", pane)

    def to_steps(self, first: int, last: int, pane: str | None = None) -> "Selection":
        """Narrowed to these steps, and shown in that pane."""
        label = f"step {first}" if first == last else f"steps {first}–{last}"
        return self.narrowed("steps", (first, last), label, pane)

    def to_bucket(self, key: str, label: str) -> "Selection":
        """Narrowed to a bucket, and shown in the pane of what it is made of: kernels, or the host's events to blame."""
        return self.narrowed("bucket", key, label, "kernels" if key in ON_THE_GPU else "operators")

    def widened(self) -> "Selection":
        """Without the last facet, in the pane where it was chosen; if there is no facet, the first pane."""
        if not self.facets:
            return replace(self, pane=HOME)
        return replace(self, facets=self.facets[:-1], pane=self.facets[-1].since)

    def at(self, pane: str) -> "Selection":
        """The selection, shown in another pane."""
        return replace(self, pane=pane)

    def seen(self, view: str) -> "Selection":
        """The selection, seen in wall time or in host time."""
        return replace(self, view=view)

    def without(self, *kinds: Kind) -> "Selection":
        """The selection without its facets of these kinds."""
        return replace(self, facets=tuple(facet for facet in self.facets if facet.kind not in kinds))


class History(Struct, frozen=True):
    """The present selection, the earlier ones (latest last), and those that `back` has left (nearest first)."""

    now: Selection = Selection()
    past: tuple[Selection, ...] = ()
    future: tuple[Selection, ...] = ()

    def visited(self, selection: Selection) -> "History":
        """Go on to another selection; those that `back` has left are forgotten."""
        return self if selection == self.now else History(selection, (*self.past, self.now))

    def replaced(self, selection: Selection) -> "History":
        """Replace the present selection: one that changes with every key is not remembered."""
        return replace(self, now=selection)

    def back(self) -> "History":
        """Go back to the previous selection, if there is one."""
        if not self.past:
            return self
        return History(self.past[-1], self.past[:-1], (self.now, *self.future))

    def forth(self) -> "History":
        """Go forward again, if there is a later selection."""
        if not self.future:
            return self
        return History(self.future[0], (*self.past, self.now), self.future[1:])
