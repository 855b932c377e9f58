"""The first file that runs in the child process. It must leave no trace in what the user's program sees.

Python puts the folder of the file that it runs at the front of `sys.path`: for this file, that would let our modules
shadow the program's. The folder of tracekit itself is on the path for a single import: its package knows the rest.
"""

import sys

if not sys.flags.safe_path:
    del sys.path[0]

if __name__ == "__main__":
    import os

    _plain = [*sys.path]
    sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3)))
    import tracekit  # noqa: F401 - this one, whichever else is installed

    sys.path[:] = _plain
    from tracekit.capture.child import worker

    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    worker.main(sys.argv[1])
    sys.stdout.flush()
    os._exit(0)  # threads and workers that the program left running would keep us waiting
