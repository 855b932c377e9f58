"""`tracekit cache`: the traces that have been read, and need not be read again."""

import argparse
from typing import TYPE_CHECKING

from tracekit.base.names import sanitize
from tracekit.cli.arguments import Verb
from tracekit.cli.output import add_json, printed, tell, write_out

if TYPE_CHECKING:
    from tracekit.trace.storing.cache import Entry


class CacheVerb(Verb):
    """List the traces in the cache, or remove them."""

    name = "cache"

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        add_json(parser)
        parser.add_argument("--clear", action="store_true", help="remove all traces from the cache")

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """List or clear."""
        from tracekit.base.units import size
        from tracekit.trace.storing import cache

        folder = sanitize(str(cache.home()))
        if options.clear:
            tell(f"Removed {cache.clear()} traces from {folder}")
            return 0
        entries = cache.entries()
        if options.format == "json":
            write_out(_as_json(entries, options))
        else:
            write_out(
                "".join(f"{size(entry.size):>10}  {sanitize(str(entry.facts.get('path', '')))}\n" for entry in entries)
            )
        tell(f"{len(entries)} traces, {size(sum(entry.size for entry in entries))} in {folder}")
        return 0


def _as_json(entries: "list[Entry]", options: argparse.Namespace) -> str:
    import pyarrow as pa

    from tracekit.faces import Options
    from tracekit.report.blocks import Table
    from tracekit.trace.schema import LABEL, column

    schema = pa.schema(
        [
            column("trace", LABEL, "the file that was read", role="name"),
            column("size_bytes", pa.int64(), "what its columns take in the cache", "B"),
        ]
    )
    columns = {
        "trace": [str(entry.facts.get("path", "")) for entry in entries],
        "size_bytes": [entry.size for entry in entries],
    }
    return printed([Table("cache", pa.table(columns, schema))], Options(), options)
