"""Path patterns: what a glob matches, and exactly which paths two globs share."""
