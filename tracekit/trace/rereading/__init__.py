"""What few questions need of a trace's file, read once more for a trace that has been read: arguments, allocations."""
