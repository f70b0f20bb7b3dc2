"""Generative adversarial nets (Goodfellow et al. 2014): networks, Algorithm 1, theory, the paper's experiments."""
