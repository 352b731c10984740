"""A recipe and a catalog into a plan, or all its problems. One file a rule."""
