"""What one can ask of a trained Transformer: maps, statistics, interventions."""
