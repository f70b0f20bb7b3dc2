"""The laboratory: what made and measured the shipped weights. No package imports it; the wheel does not carry it."""
