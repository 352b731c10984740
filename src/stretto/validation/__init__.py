"""Is an answer what the recipe asked for (RECIPES §7)? Pure: text in, a verdict out."""
