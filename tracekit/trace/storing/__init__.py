"""What has been read, kept on disk, and the folders for unfinished work."""
