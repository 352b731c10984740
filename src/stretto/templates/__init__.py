"""`{{ }}` and expressions: parse, check, render, evaluate."""
