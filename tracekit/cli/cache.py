"""`tracekit cache`: the traces that have been read, and need not be read again."""

import argparse

from tracekit.cli.streams import tell, write_out
from tracekit.cli.verb import Verb
from tracekit.sanitize import sanitize


class CacheVerb(Verb):
    """List the traces in the cache, or remove them."""

    name = "cache"

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--clear", action="store_true", help="remove all traces from the cache")

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """List or clear."""
        from tracekit.trace.storing import cache
        from tracekit.units import size

        folder = sanitize(str(cache.home()))
        if options.clear:
            tell(f"Removed {cache.clear()} traces from {folder}")
            return 0
        entries = cache.entries()
        write_out(
            "".join(f"{size(entry.size):>10}  {sanitize(str(entry.facts.get('path', '')))}\n" for entry in entries)
        )
        tell(f"{len(entries)} traces, {size(sum(entry.size for entry in entries))} in {folder}")
        return 0
