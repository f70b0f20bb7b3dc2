"""English constituency parsing (section 6.3): trees as sequences, a search that only finds trees, EVALB's figures."""
