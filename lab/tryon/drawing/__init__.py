"""What drawn people and garments are painted with. Coordinates are those of a 768 x 1024 picture."""
