"""The terminal: one file a command; argv in, exit code out."""
