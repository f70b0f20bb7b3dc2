"""What is not in the paper: rules on the predicted segmentation, the fit of the spline, and the final composite."""
