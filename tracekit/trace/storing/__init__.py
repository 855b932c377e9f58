"""What was read once, on disk, and the folders in which unfinished work lies."""
