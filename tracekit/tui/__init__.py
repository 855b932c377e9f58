"""The terminal UI: one more face of the report.

`app` has the keys. `arriving` reads what was named; `browser` is the screen: it knows from `model.navigation` where the
user is, asks the pane there, and hands the answer to `widgets`, which know nothing of traces. `model` holds everything
that is shown, without Textual: what is selected, and a query of it for each pane. A new pane is a file in
`model/panes`; a new question of the report is a pane by itself. `study` is an app of its own, for the cells of a study.
"""
