"""The report, drawn: one file per face. A face lays out and escapes; it works nothing out."""
