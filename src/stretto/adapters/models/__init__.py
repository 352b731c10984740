"""Models by name: which one a name means, how it is asked, what it costs.

`named.NamedModels` is the port that subagents use. OpenAI-compatible servers are asked directly, models
on this machine run in `local`, agent programs in `cli`, and all other providers go through pydantic-ai,
which takes a second to import and is imported only then.
"""
