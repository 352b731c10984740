"""When a run starts by itself: schedules, webhooks, watched folders. A trigger is a when, and no kind of work."""
