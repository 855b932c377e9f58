"""Failures of what is asked: names of variants and metrics, budgets, queries, analyses by HTA, charts."""

from collections.abc import Sequence

from tracekit.errors.base import TracekitError, named


class UnknownVariantError(TracekitError):
    """A name that no variant has."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"{name}: no such variant. Available: {', '.join(known)}")


class UnknownMetricError(TracekitError):
    """A metric that is not measured."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"{name}: no such metric. Available: {', '.join(known)}")


class ToleratedRegressionError(TracekitError):
    """A regression that must be seen, but would pass."""

    def __init__(self, smallest: float, tolerance: float) -> None:
        super().__init__(
            f"--min-detectable {smallest * 100:g}%: regressions of up to {tolerance * 100:g} % pass. Ask for more, or "
            "for less with --tolerance."
        )


class BudgetError(TracekitError):
    """A budget that cannot be used."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(f"{named(path)} is not a budget: {why}.")


class FewTokensError(TracekitError):
    """A number of tokens in which no fact can be told."""

    def __init__(self, budget: int, needed: int) -> None:
        super().__init__(f"No fact fits into {budget} tokens. Give at least --budget-tokens {needed}.")


class QueryError(TracekitError):
    """A query that DuckDB cannot answer."""

    def __init__(self, why: str, tables: Sequence[str]) -> None:
        super().__init__(f"The query failed ({why.rstrip('.')}). The tables are: {', '.join(tables)}.")


class HtaError(TracekitError):
    """An analysis by HTA that fails on a trace."""

    def __init__(self, analysis: str, why: str) -> None:
        super().__init__(
            f"HTA cannot answer {analysis} here ({named(why)}). Others may work: tracekit hta --help lists them."
        )


class NothingToDrawError(TracekitError):
    """A chart of something that was not recorded."""

    def __init__(self, kind: str) -> None:
        super().__init__(
            f"There is nothing to draw for --kind {kind}. Another kind may have something: tracekit plot --help"
        )
