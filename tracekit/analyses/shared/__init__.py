"""What several analyses have in common; nothing here is a question of its own."""
