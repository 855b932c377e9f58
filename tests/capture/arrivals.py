"""By how much one rank of `straggler.py` came later than the first of the others, as the ranks measured themselves."""


def lateness_ns(folder, late, ranks):
    """For each reduction of each pass, the least and the most that it can have been.

    Each rank notes a moment before and one after it arrived, however long it was held up between them.
    """
    for port in {path.name.partition("-")[0] for path in folder.iterdir()}:
        noted = [
            [[*map(int, line.split())] for line in (folder / f"{port}-{rank}").read_text().splitlines()]
            for rank in range(ranks)
        ]
        for each in zip(*noted, strict=False):
            if all(len(moments) == 2 for moments in each):
                since, until = zip(*each, strict=True)
                yield since[late] - min(until), until[late] - min(since)


def fits(lateness, found_ns, clocks):
    """Whether what was found can have been so in one of them, given how the clocks of the ranks were aligned."""
    offsets = [clock.offset_ns for clock in clocks]
    slack = max(offsets) - min(offsets) + 1_000_000  # one clock has them all, which differs from the profiler's
    return any(least - slack <= found_ns <= most + slack for least, most in lateness)
