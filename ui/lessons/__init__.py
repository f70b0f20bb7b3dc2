"""The lessons: paths with stops, experiments, and a sheet to be worked out by hand."""
