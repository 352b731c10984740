"""What happened in a run: typed events and their JSON."""
