"""VITON-HD: high-resolution virtual try-on, stage by stage."""
