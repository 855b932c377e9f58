"""The terminal UI: one more face of the report.

`app` defines what the keys do. `arriving` reads the inputs. `browser` is the screen: `model.navigation` tells it where
the user is; it queries the pane there and hands the answer to `widgets`, which know nothing of traces. `model` holds
everything that is shown, without Textual: what is selected, and a query for each pane. A new pane is a file in
`model/panes`; a new question of the report becomes a pane automatically. `study` is a separate app for the cells of a
study.
"""
