"""What everything else stands on, and what knows nothing of traces: intervals, units, names, files, interruptions."""
