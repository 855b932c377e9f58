"""One file for each tool, in the order of the page."""

from tests.compare.peer import Peer


def peers() -> list[Peer]:
    """All of them, tracekit first."""
    from tests.compare.peers import hta, ours, perfetto, tensorboard, tracelens

    return [ours.PEER, hta.PEER, tensorboard.PEER, tracelens.PEER, perfetto.PEER]
