"""What tracekit.watch() costs a step, at most 20 µs with all of its interval: `python -m tests.benchmarks.watching`."""

import sys

from tracekit.watching import overhead

SECONDS = 60.0  # for each training


def main() -> int:
    costs = []
    for cost in overhead.measured(SECONDS):
        print(cost.sentence(), flush=True)
        costs.append(cost)
    print(overhead.verdict(costs))
    return 0 if all(cost.is_within for cost in costs) else 1


if __name__ == "__main__":
    sys.exit(main())
