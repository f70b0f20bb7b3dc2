"""English constituency parsing (section 6.3): trees as sequences, a search that can only end in a tree, EVALB's
figures.
"""
