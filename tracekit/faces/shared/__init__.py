"""What several faces need: cells, names, wording, the machine-readable document."""
