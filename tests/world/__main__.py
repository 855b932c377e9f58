"""python -m tests.world --worlds 500: how often tracekit is right, by cause, and where it is not."""

from __future__ import annotations

import argparse

from tests.world.score import QUESTIONS, judged, rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--floors", action="store_true", help="print rates.toml for these rates")
    parser.add_argument("--misses", type=int, default=0, help="so many misses of each kind and question are shown")
    options = parser.parse_args()
    scores = judged(range(options.first, options.first + options.worlds), options.workers)
    table = dict(sorted(rates(scores.values()).items()))
    if options.floors:
        for kind, row in table.items():
            print(f'["{kind}"]')
            print("".join(f"{name} = {100 * right // asked}\n" for name, (right, asked) in row.items() if asked))
        return
    print(f"{'':24}" + "".join(f"{question:>18}" for question in QUESTIONS))
    for kind, row in table.items():
        cells = (f"{right}/{asked} {right / asked:4.0%}" if asked else "" for right, asked in row.values())
        print(f"{kind:24}" + "".join(f"{cell:>18}" for cell in cells))
    shown: dict[tuple[str, str], int] = {}
    for seed, score in scores.items():
        for question in QUESTIONS:
            key = (score.kind, question)
            if getattr(score, question) is False and shown.get(key, 0) < options.misses:
                shown[key] = shown.get(key, 0) + 1
                print(f"{question:8} {seed:6}  {score.said}")


if __name__ == "__main__":
    main()
