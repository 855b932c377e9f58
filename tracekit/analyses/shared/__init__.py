"""What several analyses have in common; no module here is an analysis itself."""
