"""Every failure that a user can cause is a class here, with a sentence that names the cause and the next step.

The command line turns these into exit codes; nothing else catches them wholesale. `asking` has those of what is asked
for, `reading` those of files, traces and runs, `capturing` those of captures and sweeps.
"""

from tracekit.errors.base import TracekitError

__all__ = ["TracekitError"]
