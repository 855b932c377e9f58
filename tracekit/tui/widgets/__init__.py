"""Widgets, which draw pieces of content and know nothing of traces."""
