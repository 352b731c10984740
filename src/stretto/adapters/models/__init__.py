"""Models by name, under pydantic-ai: which one a name means, how it is spoken to, what it costs.

Importing this package imports nothing else. `providers.check_name`, `resolve` and `prices` do not
need pydantic_ai either; `make_model` does, once a model is asked for.
"""
