"""What must happen next: RunState and `advance`, a pure function of a run's events."""
