"""Where panes are shown, one at a time: a timeline; or a pane's content, piece below piece, in which tables share the
height that the other pieces leave, and variants are stacked bars on one scale: in colours, with patterns where a
terminal has not all of them.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.style import Style
from rich.text import Text
from textual.containers import Container, VerticalScroll
from textual.geometry import Region, Size
from textual.layout import Layout, WidgetPlacement
from textual.layouts.vertical import VerticalLayout
from textual.widget import MountError, Widget
from textual.widgets import Static

from tracekit.base.names import aligned
from tracekit.profile import Profile
from tracekit.tui.model.bucket_table import BucketTable, bars
from tracekit.tui.model.content import Code, Content, Lanes, Prose
from tracekit.tui.model.sheet import Sheet
from tracekit.tui.model.strip import StepStrip
from tracekit.tui.timeline.widget import Timeline
from tracekit.tui.widgets.cards import Cards
from tracekit.tui.widgets.columns import on
from tracekit.tui.widgets.grid import LEAST, Grid, Left
from tracekit.tui.widgets.steps import Steps

_LINES_OF_A_LOW_SCREEN = 30  # lines of a screen: with fewer, there are no bars above a table that says the same
_FEW_ROWS = 8  # rows of tables that leave room for sentences on such a screen
_STYLES = {"lead": "bold", "plain": "", "quiet": "dim"}
_TALL = 40  # lines of a screen
_DIM = Style(dim=True)


class Stage(Container):
    """One widget shows all panes except timelines; each timeline has its own, which is preserved while other panes are
    shown, since indexing takes long.
    """

    @property
    def pane(self) -> "PaneView | None":
        """The pane on screen, unless it is a timeline."""
        return next((child for child in self.children if isinstance(child, PaneView) and child.display), None)

    async def show(self, content: Content, begin: tuple[int, int]) -> None:
        """Show an answer, unless the app is quitting: the screen then accepts no more widgets."""
        lanes = next((piece for piece in content.pieces if isinstance(piece, Lanes)), None)
        try:
            if lanes is not None:
                timelines = (timeline for timeline in self.query(Timeline) if timeline.profiles == lanes.profiles)
                timeline = next(timelines, None) or Timeline(lanes.profiles)
                await self.put(timeline)
                timeline.go_to(lanes.target)
                self.screen.set_focus(timeline, scroll_visible=False)
            else:
                pane = next((child for child in self.children if isinstance(child, PaneView)), None) or PaneView()
                await self.put(pane)
                await pane.show(content, begin)
        except MountError:
            if self.is_attached:
                raise

    def forget_but(self, profiles: Sequence[Profile]) -> None:
        """Drop the timelines of other variants than these: more variants have arrived since they were made."""
        profile_ids = {id(profile) for profile in profiles}
        for timeline in self.query(Timeline):
            if not timeline.display and any(id(profile) not in profile_ids for profile in timeline.profiles):
                timeline.remove()

    async def put(self, widget: Widget) -> None:
        """Show a widget in place of the present one."""
        for child in [*self.children]:
            child.display = child is widget
            if child is not widget and not isinstance(child, Timeline | PaneView):
                await child.remove()
        if widget not in self.children:
            await self.mount(widget)


class PaneView(VerticalScroll, can_focus=False):
    """Shows one pane after another. Its tables and the lines of steps get the focus in turn.

    Each pane reuses the widgets of earlier panes, and those that it does not need are hidden: making widgets anew takes
    three times as long as drawing the screen.
    """

    def __init__(self) -> None:
        super().__init__()
        self.content = Content(())
        self._pieces: list[Widget] = []  # the widgets that show the content, from top to bottom

    @property
    def layout(self) -> Layout:
        """One piece below the other."""
        return _LAYOUT

    async def show(self, content: Content, begin: tuple[int, int]) -> None:
        """Show an answer, and give the focus to the table to begin at."""
        self.content, self._pieces = content, []
        spare = [*self.children]
        for kind, piece in _parts(content):
            position = next((k for k, widget in enumerate(spare) if type(widget) is kind), len(spare))
            _hide(spare[:position])
            self._pieces.append(_showing(spare[position], piece) if position < len(spare) else kind(piece))
            del spare[: position + 1]
        _hide(spare)
        new = [widget for widget in self._pieces if widget.parent is None]
        if new:
            await self.mount(*new)
        self.on_resize()
        self.scroll_to(y=0, animate=False, immediate=True)
        table, row = begin
        first = next(iter(self.stops), None)
        if 0 <= table < len(self.grids):
            first = self.grids[table]
            self.grids[table].start_at(row)
        self.screen.set_focus(first, scroll_visible=False)

    @property
    def grids(self) -> list[Grid]:
        """The tables on screen."""
        return [widget for widget in self._pieces if isinstance(widget, Grid)]

    @property
    def stops(self) -> list[Widget]:
        """The widgets that can have the focus, from top to bottom."""
        return [widget for widget in self._pieces if widget.can_focus]

    def on_resize(self) -> None:
        """If there is little room, give it to the tables."""
        is_low = self.app.size.height < _LINES_OF_A_LOW_SCREEN and bool(self.content.sheets)
        is_long = sum(map(len, self.content.sheets)) > _FEW_ROWS
        for widget in self._pieces:
            if isinstance(widget, Bars):
                widget.display = not is_low
            elif widget.has_class("quiet"):
                widget.display = not (is_low and is_long)

    def on_grid_changed(self, message: Grid.Changed) -> None:
        """Say above the table how many of its rows are shown."""
        title = self._pieces[self._pieces.index(message.grid) - 1]
        _showing(title, message.grid.sheet)

    def on_left(self, message: Left) -> None:
        """Give the focus to the next widget, or to the previous one; at the ends, scroll the page."""
        stops, way = self.stops, message.way
        position = stops.index(message.widget) + way
        if 0 <= position < len(stops):
            stops[position].focus()
            if isinstance(grid := stops[position], Grid):
                grid.go(0 if way > 0 else len(grid.sheet))
        else:
            self.scroll_relative(y=3 * way, animate=False)


class SharedHeight(VerticalLayout):
    """Each table gets the height it needs; if that is too much together, those that need most get less.

    The heights are part of the layout itself, so that a pane is drawn only once.
    """

    name = "shared-height"

    def arrange(self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True) -> list[WidgetPlacement]:
        """Give all widgets the heights that they need, then take from the tables what is too much."""
        placements = super().arrange(parent, children, size, greedy)
        grids = [(placement.widget, placement.region) for placement in placements if isinstance(placement.widget, Grid)]
        tables = [region.height for _, region in grids]
        least_heights = [grid.least(region.width) for grid, region in grids]
        needed = max((placement.region.bottom + placement.margin.bottom for placement in placements), default=0)
        shares = iter(shared(tables, size.height - (needed - sum(tables)), least_heights))
        arranged, lines_saved = [], 0
        for placement in placements:
            x, y, width, height = placement.region
            share = next(shares) if isinstance(placement.widget, Grid) else height
            arranged.append(placement._replace(region=Region(x, y - lines_saved, width, share)))
            lines_saved += height - share
        return arranged


_LAYOUT = SharedHeight()


class Title(Static):
    """The heading of a table, with the number of rows that a filter leaves; hidden if there is nothing to say."""

    def __init__(self, sheet: Sheet) -> None:
        super().__init__(markup=False, classes="title")
        self.show(sheet)

    def show(self, sheet: Sheet) -> None:
        """Say how many rows are left."""
        rows = f"{len(sheet):,} of {sheet.table.num_rows:,} rows contain “{sheet.pattern}”" if sheet.pattern else ""
        text = " · ".join(filter(None, (rows, sheet.title)))
        self.display = bool(text)
        self.update(Text(text, no_wrap=True, overflow="ellipsis"), layout=False)


class Paragraphs(Static):
    """Sentences."""

    def __init__(self, piece: Prose) -> None:
        super().__init__(markup=False)
        self.show(piece)

    def show(self, piece: Prose) -> None:
        """Show other sentences."""
        self.set_classes(f"prose {piece.tone}")
        style = _STYLES[piece.tone]
        lines = [Text(line, style) for line in piece.lines]
        if piece.title and lines:
            lines[0] = Text.assemble((f"{piece.title}: ", "bold"), lines[0])
        self.update(Text("\n").join(lines))


def _parts(content: Content) -> Iterator[tuple[Any, Any]]:
    """The widgets that show the content, and what each of them shows."""
    for piece in content.pieces:
        match piece:
            case Sheet():
                yield from ((Title, piece), (Cards if piece.cards else Grid, piece))
            case Code():
                yield from ((Title, piece.sheet), (Grid, piece.sheet))
            case Prose():
                yield Paragraphs, piece
            case BucketTable():
                yield Bars, piece
            case StepStrip():
                yield Steps, piece
            case _:
                raise TypeError(f"{type(piece).__name__}: is not a piece that can be drawn")


def _showing(widget: Any, piece: object) -> Widget:
    widget.display = True
    widget.show(piece)
    return widget  # type: ignore[no-any-return]


def _hide(widgets: list[Widget]) -> None:
    for widget in widgets:
        widget.display = False


class Bars(Widget):
    """A bar and its value for each variant, drawn to fit the width."""

    def __init__(self, numbers: BucketTable) -> None:
        super().__init__()
        self._numbers = numbers

    def show(self, numbers: BucketTable) -> None:
        """Show another breakdown."""
        self._numbers = numbers
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """The height, in lines, that the pane takes at this width."""
        return len(self.lines(width))

    def render(self) -> Text:
        """Draw to fit the width."""
        return Text("\n").join(self.lines(self.content_size.width))

    def lines(self, width: int) -> list[Text]:
        """A bar and its value for each variant, or the reason why it has none."""
        numbers, unanswered = self._numbers, self._numbers.unanswered
        names = aligned([*numbers.names, *unanswered], max(width // 4, 8))
        lines: list[Text] = []
        if numbers.total is not None:
            total = max(len(share.value) for share in numbers.total.shares.values())
            longest = width - len(names[0]) - total - len(numbers.unit) - 3
            tall = self.app.size.height >= _TALL and len(names) <= 3
            # Whether colours alone tell the buckets apart.
            is_plain = not self.app.no_color and self.app.console.color_system == "truecolor"
            for bar, name in zip(bars(numbers, max(longest, 1)), names, strict=False):
                bar_line, pattern_line = Text(f"{name} "), Text(" " * (len(name) + 1))
                for segment in bar.segments:
                    style = on(segment.line.colour)
                    bar_line.append(segment.label.ljust(segment.cells) if is_plain else segment.text, style)
                    pattern_line.append(" " * segment.cells if is_plain else segment.pattern, style)
                bar_line.append(f" {bar.value}", Style(bold=True))
                lines += [bar_line, pattern_line] if tall else [bar_line]
        for name, reason in zip(names[len(numbers.names) :], unanswered.values(), strict=True):
            lines.append(Text.assemble(f"{name} ", (f"cannot be answered: {reason}", _DIM)))
        return lines


def shared(heights: list[int], free: int, least_heights: list[int]) -> list[int]:
    """The lines for each: as many as wanted if they fit; otherwise those that want most are reduced first."""
    max_height = max(free, LEAST)  # for one table: otherwise millions of rows would be taken off one by one
    shares = [min(want, max_height) for want in heights]
    while sum(shares) > free:
        able = [k for k, share in enumerate(shares) if share > least_heights[k]]
        if not able:
            break
        shares[max(able, key=lambda k: shares[k])] -= 1
    return shares
