"""What is looked at: immutable, narrowed by Enter and widened by Esc. Every pane is a query of it."""

from dataclasses import dataclass, replace
from typing import Any, Literal

Kind = Literal["variant", "steps", "bucket", "finding", "kernel", "operator", "module", "line", "event", "window"]
HOME = "overview"


@dataclass(frozen=True)
class Facet:
    """One narrowing. `value` is what queries compare, `label` what the breadcrumb says, `since` the pane it began in.

    By kind, values are: a variant's name; the first and the last step (both included); a bucket's key; variant and
    place in the list of its findings; a name; a chain of modules; file and line; variant and row of the events table;
    variant and two moments on its clock, ns.
    """

    kind: Kind
    value: Any
    label: str
    since: str


@dataclass(frozen=True)
class Selection:
    """The pane that is shown, whose time (`wall` or `host`), and what it was narrowed to, in the order of narrowing."""

    pane: str = HOME
    view: str = "wall"
    facets: tuple[Facet, ...] = ()

    def of(self, kind: Kind) -> Any:
        """The value of that kind; None where nothing of it was chosen."""
        return next((facet.value for facet in self.facets if facet.kind == kind), None)

    def narrowed(self, kind: Kind, value: Any, label: str, pane: str | None = None) -> "Selection":
        """Narrowed to this too, in place of an earlier facet of its kind, and shown in that pane."""
        facet = Facet(kind, value, label, self.pane)
        others = tuple(each for each in self.facets if each.kind != kind)
        return replace(self, facets=(*others, facet), pane=pane or self.pane)

    def widened(self) -> "Selection":
        """Without the last facet, in the pane it was chosen in; without any, the first pane."""
        if not self.facets:
            return replace(self, pane=HOME)
        return replace(self, facets=self.facets[:-1], pane=self.facets[-1].since)

    def at(self, pane: str) -> "Selection":
        """The same in another pane."""
        return replace(self, pane=pane)

    def seen(self, view: str) -> "Selection":
        """The same of wall time or of host time."""
        return replace(self, view=view)

    def without(self, *kinds: Kind) -> "Selection":
        """The same without facets of these kinds."""
        return replace(self, facets=tuple(each for each in self.facets if each.kind not in kinds))


@dataclass(frozen=True)
class History:
    """The selection now, those before it, the latest last, and those that were gone back from, the next first."""

    now: Selection = Selection()
    past: tuple[Selection, ...] = ()
    future: tuple[Selection, ...] = ()

    def visited(self, selection: Selection) -> "History":
        """Go on to another; what was gone back from is forgotten."""
        return self if selection == self.now else History(selection, (*self.past, self.now))

    def replaced(self, selection: Selection) -> "History":
        """Another in place of the one now: a selection that moves with every key is not remembered."""
        return replace(self, now=selection)

    def back(self) -> "History":
        """Go to the selection before, where there is one."""
        if not self.past:
            return self
        return History(self.past[-1], self.past[:-1], (self.now, *self.future))

    def forth(self) -> "History":
        """Go forward again, where there is a later selection."""
        if not self.future:
            return self
        return History(self.future[0], (*self.past, self.now), self.future[1:])
