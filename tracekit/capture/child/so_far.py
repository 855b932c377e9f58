"""What a pass has found so far, left where its parent finds it: whatever then ends the process, that is not lost."""

from pathlib import Path

import msgspec

from tracekit.capture.job import SO_FAR, Answer, Job


def keep(job: Job, answer: Answer) -> None:
    """Leave it, in place of what was left before; in a process of the user's own there is no parent to find it."""
    if not job.scratch:
        return
    part = Path(job.scratch, f"{SO_FAR}.part")
    part.write_bytes(msgspec.json.encode(answer, enc_hook=repr))
    part.replace(Path(job.scratch, SO_FAR))
