"""What opens over the panes: help, and choices."""
