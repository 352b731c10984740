"""Check a recipe against a catalog of agents, and make a plan of it. Pure: nothing is read."""
