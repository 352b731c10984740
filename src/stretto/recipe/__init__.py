"""Read the text of a recipe into a Recipe: what the author wrote, and where it stands."""
