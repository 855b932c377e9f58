"""Tables as `tracekit export` writes them."""

import pyarrow.parquet as pq

from tracekit.cli import main


def exported(path, folder, *options):
    """The rows of each table."""
    assert main(["export", str(path), "-o", str(folder), *options]) == 0
    return {each.stem: pq.read_table(each).to_pylist() for each in folder.glob("*.parquet")}
