"""The lanes of a variant, indexed so that a terminal or a page can draw any window of them immediately."""

from tracekit.timeline.categories import CATEGORIES, CATEGORY, Category
from tracekit.timeline.index import Family, Group, Index
from tracekit.timeline.lane import NONE, Columns, Lane

__all__ = ["CATEGORIES", "CATEGORY", "NONE", "Category", "Columns", "Family", "Group", "Index", "Lane"]
