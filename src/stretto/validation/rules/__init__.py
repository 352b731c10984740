"""Plain-English rules: which ones code understands, and whether an answer meets them."""
