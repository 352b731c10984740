"""Text with positions: YAML, JSON and front matter into nodes, within limits."""
