"""What a pass has measured so far, left where its parent finds it, so that no end of the process can lose it."""

from pathlib import Path

import msgspec

from tracekit.atomic import put
from tracekit.capture.job import SO_FAR, Job, PassResult


def keep(job: Job, answer: PassResult) -> None:
    """Write the answer where the parent looks for it, over an earlier one; without a parent, write nothing."""
    if job.scratch:
        put(Path(job.scratch, SO_FAR), msgspec.json.encode(answer, enc_hook=repr))
