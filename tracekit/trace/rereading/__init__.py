"""Reads a trace file a second time for what only a few questions need: arguments and allocations."""
