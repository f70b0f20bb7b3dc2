"""Training data: the pack of photographs, pairs made from it, and drawn people."""
