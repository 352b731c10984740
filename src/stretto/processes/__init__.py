"""Starting other programs: which one is meant, and that it ends when we do."""
