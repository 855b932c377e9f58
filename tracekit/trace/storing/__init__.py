"""The cache of what has been read, on disk, and the folders for unfinished work."""
