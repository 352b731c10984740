"""Text into a Recipe: what the author wrote, with its places. One file a dialect."""
