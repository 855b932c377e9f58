"""How a pass begins: in its view of the file system, with its folders, and with no more imports than it needs."""

import faulthandler
import json
import os
import sys
import tempfile
from contextlib import suppress


def main(folder: str) -> None:
    """Perform the job that is in this folder."""
    view = os.path.join(folder, "view")
    if os.path.exists(view):
        from tracekit.capture.child import entering

        with open(view) as holder:
            entering.enter(int(holder.read()))
    faulthandler.enable()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    with open(os.path.join(folder, "job.json")) as file:
        job = json.load(file)
    # Inductor keeps precompiled headers beside temporary files, of this pass alone: making them anew takes seconds.
    if job["headers"]:
        import getpass

        with suppress(OSError, KeyError, ModuleNotFoundError):  # as where a user has no name
            os.symlink(job["headers"], os.path.join(tempfile.gettempdir(), f"torchinductor_{getpass.getuser()}"))
    if job["stage"] == "live":
        from tracekit.capture.child import live

        live.main(folder)
    else:
        from tracekit.capture.child import worker

        worker.main(folder)
