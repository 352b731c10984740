"""Models that run on this machine: their weights, a llama.cpp process, a pydantic-ai Model."""
