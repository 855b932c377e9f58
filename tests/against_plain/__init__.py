"""Is the ratio that a capture quotes that of plain processes?

Twelve ordinary scripts, for which nothing was tuned (`scripts`), are captured and also run as `python SCRIPT`, eager
and compiled in turn, each by a clock of its own. `test_ratios` compares what both say, beside nothing else, for an
hour; `test_as_plain` compares two of them by what a busy machine does not change.
"""
