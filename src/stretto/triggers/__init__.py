"""When a run starts by itself: schedules, webhooks, watched folders. A trigger only says when."""
