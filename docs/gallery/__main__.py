"""Makes every page of the gallery, and its pictures, from the traces in a folder. `make gallery`."""

import argparse
import os
import sys
from pathlib import Path

from docs.gallery.pages import index, page
from docs.gallery.traces import GalleryError, fetch, gallery, stored

HERE = Path(__file__).parent
_TRACES = Path(os.environ.get("TRACEKIT_TRACES") or HERE.parent.parent / "out" / "traces")


def main() -> int:
    """Do what the arguments ask for; 1 where a trace is absent."""
    parser = argparse.ArgumentParser(prog="python -m docs.gallery", description=__doc__)
    parser.add_argument(
        "--traces", type=Path, default=_TRACES, metavar="DIR", help="the folder of the traces (default: %(default)s)"
    )
    parser.add_argument("--fetch", action="store_true", help="fetch the traces that are not in the folder")
    asked = parser.parse_args()
    try:
        make(asked.traces, asked.fetch)
    except GalleryError as error:
        print(f"gallery: {error}", file=sys.stderr)
        return 1
    return 0


def make(traces: Path, fetches: bool) -> None:
    """Write the pages. Raises GalleryError before anything is written if a trace is absent or another one."""
    all_of_it = gallery()
    if fetches:
        for name, trace in all_of_it.traces.items():
            if not (traces / f"{name}.json.gz").exists():
                print(f"fetching {name} from {trace.address}")
                fetch(name, trace, traces)
    paths = {name: stored(name, trace, traces) for name, trace in all_of_it.traces.items()}
    pages = [
        page(case, [paths[name] for name in names], [all_of_it.traces[name] for name in names])
        for case, names in all_of_it.cases.items()
    ]
    for made in pages:
        (HERE / f"{made.name}.md").write_text(made.text, encoding="utf-8")
        if made.picture is not None:
            (HERE / f"{made.name}.png").write_bytes(made.picture)
    (HERE / "index.md").write_text(index(pages, all_of_it), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
