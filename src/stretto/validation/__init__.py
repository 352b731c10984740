"""Decide whether an answer is what the recipe asked for (RECIPES §7), without a file or a clock."""
