"""A layout from top to bottom in which tables share the height that everything else leaves."""

from textual.geometry import Region, Size
from textual.layout import WidgetPlacement
from textual.layouts.vertical import VerticalLayout
from textual.widget import Widget

from tracekit.tui.widgets.grid import LEAST, Grid


class SharedHeight(VerticalLayout):
    """Each table gets the height it needs; if that is too much together, those that need most get less.

    The heights are part of the layout itself, so that a pane is drawn only once.
    """

    name = "shared-height"

    def arrange(self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True) -> list[WidgetPlacement]:
        """Give all widgets the heights that they need, then take from the tables what is too much."""
        placements = super().arrange(parent, children, size, greedy)
        grids = [(each.widget, each.region) for each in placements if isinstance(each.widget, Grid)]
        tables = [region.height for _, region in grids]
        least = [grid.least(region.width) for grid, region in grids]
        needed = max((each.region.bottom + each.margin.bottom for each in placements), default=0)
        shares = iter(shared(tables, size.height - (needed - sum(tables)), least))
        arranged, taken = [], 0
        for each in placements:
            x, y, width, height = each.region
            share = next(shares) if isinstance(each.widget, Grid) else height
            arranged.append(each._replace(region=Region(x, y - taken, width, share)))
            taken += height - share
        return arranged


def shared(wanted: list[int], free: int, least: list[int]) -> list[int]:
    """The lines for each: as many as wanted if they fit; otherwise those that want most are reduced first."""
    most = max(free, LEAST)  # for one table: otherwise millions of rows would be taken off one by one
    shares = [min(want, most) for want in wanted]
    while sum(shares) > free:
        able = [k for k, share in enumerate(shares) if share > least[k]]
        if not able:
            break
        shares[max(able, key=lambda k: shares[k])] -= 1
    return shares
