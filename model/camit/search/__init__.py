"""Search: plain beams, ordered constraints, and the bi-directional revision of a whole sentence."""
