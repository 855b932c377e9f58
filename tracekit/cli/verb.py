"""What every verb of the command line is."""

import argparse
from typing import ClassVar

NOT_CHECKED = 3  # the exit code of a check that could not be made, in which 1 is a verdict


class Verb:
    """A verb: the docstring of its class is its help."""

    name: ClassVar[str]
    reads_traces: ClassVar[bool] = False  # NumPy is imported first, without the threads that nothing here needs
    needs_pandas: ClassVar[bool] = False  # which otherwise counts as not installed, because importing it is slow
    runs_scripts: ClassVar[bool] = False  # what follows `--` on the command line belongs to a script
    failure: ClassVar[int] = 1  # the exit code of an error

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        raise NotImplementedError

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Do it, and return the exit code."""
        raise NotImplementedError
