"""Where journals are kept: in SQLite, or in memory."""
