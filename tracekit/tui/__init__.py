"""The terminal UI: one more face of the report. `view_model` holds what is shown, without Textual; the rest draws it.

A room is one tab: a new one is a file in `rooms` and an entry in `rooms.all_rooms`.
"""
