"""Decide whether an answer is what the recipe asked for, without a file or a clock."""
