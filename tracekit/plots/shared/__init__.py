"""What charts share."""
