"""The rules that a recipe is held to. Each takes the draft and reports what its author should fix."""
