"""Text at the edges: what must not leave in it, and what must not reach a terminal."""
