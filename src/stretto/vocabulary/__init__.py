"""The words every other room speaks: ids, statuses, durations, usage."""
