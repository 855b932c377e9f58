"""The terminal UI: one more face of the report.

`model` holds everything that is shown, without Textual: what is selected, and a query of it for each pane. `widgets`
draw pieces of content and know nothing of traces; `selecting` brings both together, and `app` has the keys. A new pane
is a file in `model/panes`; a new question of the report is a pane by itself.
"""
