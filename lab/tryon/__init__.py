"""How the weights of Try on were trained and measured; LOGBOOK-tryon.md tells it in order."""
