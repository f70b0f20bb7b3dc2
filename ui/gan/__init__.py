"""The GAN tab: Algorithm 1 at work on the line, in the plane and on digits."""
