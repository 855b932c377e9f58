"""`tracekit cache`: the traces that have been read, and need not be read again."""

import argparse

from tracekit.base.names import sanitize
from tracekit.cli.arguments import Verb
from tracekit.cli.output import add_json, printed, tell, write_out


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
        paths, sizes = [str(entry.facts.get("path", "")) for entry in entries], [entry.size for entry in entries]
        if options.format == "json":
            import pyarrow as pa

            from tracekit.faces import Options
            from tracekit.report.blocks import Table
            from tracekit.trace.schema import LABEL, column

            trace = column("trace", LABEL, "the file that was read", role="name")
            size_bytes = column("size_bytes", pa.int64(), "what its columns take in the cache", "B")
            rows = pa.table({"trace": paths, "size_bytes": sizes}, pa.schema([trace, size_bytes]))
            write_out(printed([Table("cache", rows)], Options(), options))
        else:
            pairs = zip(paths, sizes, strict=True)
            write_out("".join(f"{size(length):>10}  {sanitize(path)}\n" for path, length in pairs))
        tell(f"{len(entries)} traces, {size(sum(sizes))} in {folder}")
        return 0
