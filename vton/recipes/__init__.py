"""One training recipe per network: parser, segmentation, matching, alias."""
