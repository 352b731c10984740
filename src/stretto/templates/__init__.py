"""`{{ }}` and expressions: parse, check, render, evaluate (RECIPES §5)."""
