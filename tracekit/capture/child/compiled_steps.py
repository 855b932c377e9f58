"""Did compiled code step an optimizer? The parameters show it, because in-place changes raise a tensor's version."""

from typing import Any

from tracekit.capture.child.compiled_regions import Region


class CompiledSteps:
    """The versions of the parameters before compiled code ran, and the optimizers seen to step since."""

    def __init__(self) -> None:
        self._before: dict[int, int] = {}
        self._seen: set[int] = set()

    def begin(self, region: Region) -> None:
        """Note the versions, because compiled code is about to run."""
        self._before = {id(optimizer): _version(optimizer) for optimizer in region.steps}
        self._seen.clear()

    def saw(self, optimizer: Any) -> None:
        """Note that this optimizer's step was called visibly."""
        self._seen.add(id(optimizer))

    def stepped(self, region: Region) -> list[Any]:
        """The optimizers that the compiled code stepped.

        On the first call, while the code is being traced, these are all optimizers that Dynamo meets.
        """
        unseen = [optimizer for optimizer in region.steps if id(optimizer) not in self._seen]
        return [optimizer for optimizer in unseen if self._before.get(id(optimizer)) != _version(optimizer)]


def _version(optimizer: Any) -> int:
    return sum(parameter._version for group in optimizer.param_groups for parameter in group["params"])
