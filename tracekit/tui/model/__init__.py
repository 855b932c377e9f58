"""Everything that the screens show, without Textual: what was opened, what is selected, and each pane's answer."""
