"""Draped people: garment photographs sewn into panels, laid on bodies by simulation and drawn with exact truth."""
