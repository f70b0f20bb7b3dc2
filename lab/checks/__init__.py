"""Long checks of the project: hostile input, killed trainings, wrong versions of the code, known holes, a crowd."""
