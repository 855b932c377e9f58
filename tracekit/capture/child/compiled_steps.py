"""Did compiled code step an optimizer? The parameters show it: every in-place change raises a tensor's version."""

from typing import Any

from tracekit.capture.child.compiled_regions import Region


class CompiledSteps:
    """What the parameters said before compiled code ran, and who was seen to step since."""

    def __init__(self) -> None:
        self._before: dict[int, int] = {}
        self._seen: set[int] = set()

    def begin(self, region: Region) -> None:
        """It is about to run."""
        self._before = {id(each): _version(each) for each in region.steps}
        self._seen.clear()

    def saw(self, optimizer: Any) -> None:
        """That one's step was called, where we could see it."""
        self._seen.add(id(optimizer))

    def stepped(self, region: Region) -> list[Any]:
        """Those that it stepped unseen. The first time, when it is traced, it steps what it meets."""
        unseen = [each for each in region.steps if id(each) not in self._seen]
        return [each for each in unseen if self._before.get(id(each)) != _version(each)]


def _version(optimizer: Any) -> int:
    return sum(each._version for group in optimizer.param_groups for each in group["params"])
