"""`tracekit explain-finding`: what a finding, a law or a bucket means."""

import argparse
from textwrap import fill

from tracekit.cli.arguments import Verb
from tracekit.cli.output import write_out


class ExplainFindingVerb(Verb):
    """Explain findings, laws of a trace and buckets: what each means, when it is wrong, and what to change."""

    name = "explain-finding"
    reads_traces = True

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("ids", nargs="*", metavar="ID", help="what to explain (default: list all)")

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Print the pages, or the list."""
        from tracekit.base.pages import KIND_TITLES, as_text
        from tracekit.report.explained import all_pages, pages_of

        if options.ids:
            pages = [page for name in dict.fromkeys(options.ids) for page in pages_of(name)]
            write_out("\n".join(map(as_text, pages)))
            return 0
        for kind, title in KIND_TITLES.items():
            of_kind = [page for page in all_pages() if page.kind == kind]
            width = max(len(page.id) for page in of_kind) + 4
            lines = (
                fill(page.title, 100, initial_indent=f"  {page.id}".ljust(width), subsequent_indent=" " * width)
                for page in of_kind
            )
            write_out("\n".join([title, *lines, "", ""]))
        write_out("tracekit explain-finding ID explains one of them.\n")
        return 0
