"""A report as a terminal of a given width shows it."""

from io import StringIO

from rich.console import Console

from tracekit.faces import Options, text


def shown(report, width=160, **options):
    console = Console(width=width, file=StringIO(), markup=False, highlight=False, emoji=False)
    text.show(report, console, Options(**options))
    return console.file.getvalue()
