"""`tracekit restore`: puts back what a killed capture wrote to files, where no view kept it from them."""

import argparse
import shutil

from tracekit.base.names import sanitize
from tracekit.cli.arguments import Verb
from tracekit.cli.output import tell, write_out


class RestoreVerb(Verb):
    """Restore the files that a killed capture changed, as far as nothing has changed them since."""

    name = "restore"

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--dry-run", action="store_true", help="list the files, but restore nothing")
        parser.add_argument("--discard", action="store_true", help="keep the files as they are, and remove the backups")

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Restore; 1 if files are left that may not be restored."""
        from tracekit.capture import journal
        from tracekit.capture.guardian import abandoned, exclusive_claim

        kept_files = 0
        folders = abandoned()
        for folder in folders:
            with exclusive_claim(folder) as alone:
                if not alone:
                    continue
                if options.dry_run or options.discard:
                    entries = journal.read(folder / journal.JOURNAL)
                    for path in journal.paths(entry for entry in entries if not isinstance(entry, journal.Read)):
                        write_out(f"{'left as it is' if options.discard else 'to restore'}: {sanitize(path)}\n")
                    if options.discard:
                        journal.discard(folder)
                        shutil.rmtree(folder, ignore_errors=True)
                    continue
                undone = journal.undo(folder, journal.recorded_states(folder))
                for path in undone.undone:
                    write_out(f"restored: {sanitize(path)}\n")
                for path, why in undone.failed.items():
                    write_out(f"kept: {sanitize(path)} ({sanitize(why)})\n")
                kept_files += len(undone.failed)
                if undone.is_whole:
                    shutil.rmtree(folder, ignore_errors=True)
        if not folders:
            tell("Nothing to restore.")
        if kept_files:
            tell("Backups of what was kept remain until you copy them back, and run tracekit restore --discard.")
        return int(kept_files > 0)
