"""Which kinds of finding a report is to list."""

from msgspec import Struct


class Choice(Struct, frozen=True):
    """The ids to list, all if there are none, and those not to list; figures of the report do not depend on it."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    words: str = ""  # as it was asked for: `--ignore sync_stall`; empty where everything is listed

    def lists(self, name: str) -> bool:
        """Whether findings of that kind are listed."""
        return name not in self.ignore and (not self.select or name in self.select)


ALL = Choice()
