"""What happened in a run: typed events, their JSON, their versions."""
