"""What several faces share: cells, names, wording, the machine-readable document."""
