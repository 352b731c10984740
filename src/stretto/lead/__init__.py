"""The lead agent, which delegates, and what it delegates: tasks, batches, workflows, drafts."""
