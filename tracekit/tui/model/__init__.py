"""Everything the screens show, without Textual: what was opened, what is selected, and what each pane says of it."""
