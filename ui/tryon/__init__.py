"""The Try on tab."""
