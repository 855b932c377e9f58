"""`tracekit skill`: what an agent has to know to use tracekit, printed, or copied to where its client looks."""

import argparse
from pathlib import Path

from tracekit.cli.arguments import Verb
from tracekit.cli.output import tell, write_out


class SkillVerb(Verb):
    """Print the skill for agents (SKILL.md), or install it where their clients look for skills."""

    name = "skill"

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "action", nargs="?", choices=("show", "install"), default="show", help="default: %(default)s"
        )
        parser.add_argument(
            "folder",
            nargs="?",
            type=Path,
            metavar="FOLDER",
            help="install: the folder of skills to copy it into (default: .agents/skills in the current folder)",
        )

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Print it, or copy it."""
        from tracekit.skill import FILES, FOLDER, install, text

        if options.action == "show":
            write_out(text())
            return 0
        folder = install(options.folder or FOLDER)
        tell(f"The skill is in {folder}: {len(FILES)} files. Agents whose clients look there use it from now on.")
        return 0
