"""Garment photographs sewn into panels and laid on bodies by simulation, which made `assets/drapes`."""
