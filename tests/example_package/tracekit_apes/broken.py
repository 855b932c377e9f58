"""A module that fails."""

raise RuntimeError("no bananas")
