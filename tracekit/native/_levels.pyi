"""What `levels.c` offers."""

class Levels:
    """As PlainLevels."""

    def take_in(self, durations: list[int], are_comparable: bool) -> None: ...
    @property
    def level_ns(self) -> int: ...
    @property
    def factor(self) -> float: ...
