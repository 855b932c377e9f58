"""The garbage collector of a process that is forked: a fork need not look through all that its parent has imported.

That takes a quarter of a second, and copies every page of memory that it looks at.
"""

import gc

_frozen: list[int] = []  # how many objects, as long as nobody else froze any


def freeze() -> None:
    """Set aside everything there is, before a fork; not if the program has set something aside itself."""
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()
        _frozen[:] = [gc.get_freeze_count()]


def thaw() -> None:
    """Undo that in a fork; what the program has set aside since then stays there."""
    if _frozen and gc.get_freeze_count() == _frozen[0]:
        gc.unfreeze()
    _frozen.clear()
