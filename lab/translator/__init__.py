"""The translator's campaigns: mixtures of sources, text that was made, larger models, what each rule is worth."""
