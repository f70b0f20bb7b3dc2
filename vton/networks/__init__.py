"""The networks of VITON-HD as tensors in, tensors out: parser, segmentation, warping, ALIAS, and what trains them."""
