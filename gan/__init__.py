"""Generative adversarial nets: the objectives that the try-on networks are trained with."""
