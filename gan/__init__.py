"""Generative adversarial nets (Goodfellow et al. 2014): the networks, Algorithm 1, the theory, and the paper's
experiments.
"""
