"""From what a visitor uploads to what the networks read: photo, pose, parse, garment, agnostic image and map."""
