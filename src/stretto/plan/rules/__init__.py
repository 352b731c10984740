"""One file a rule. Each takes the draft and says what an author should fix."""
