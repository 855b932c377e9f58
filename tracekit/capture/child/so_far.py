"""Stores what a pass has measured so far where its parent finds it, so that it survives any end of the process."""

from pathlib import Path

import msgspec

from tracekit.base.atomic import put
from tracekit.capture.job import SO_FAR, Job, PassResult


def store(job: Job, result: PassResult) -> None:
    """Store the result, replacing the previous one; does nothing in a process of the user's, which has no parent."""
    if job.scratch:
        put(Path(job.scratch, SO_FAR), msgspec.json.encode(result, enc_hook=repr))
