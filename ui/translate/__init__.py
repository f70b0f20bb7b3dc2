"""The Translate tab and its views."""
