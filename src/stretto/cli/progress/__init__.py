"""A run as it goes, on a terminal: what is known, which rows fit, how they look."""
