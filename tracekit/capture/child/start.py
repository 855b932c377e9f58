"""The first file that runs in the child process. The user's program must not notice it.

Python puts the folder of the file that it runs at the front of `sys.path`: for this file, our modules would shadow the
program's. The folder of tracekit itself is on the path only for a single import, after which the package is known.
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
    from tracekit.capture.child import beginning

    beginning.main(sys.argv[1])
    sys.stdout.flush()
    os._exit(0)  # otherwise, this would wait for threads and workers that the program left running
