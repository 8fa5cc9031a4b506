"""Text: pure functions of strings."""
