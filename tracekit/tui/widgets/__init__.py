"""What is drawn: widgets that show pieces of content, and know nothing of traces."""
