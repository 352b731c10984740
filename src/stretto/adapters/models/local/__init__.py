"""Models that run on this machine: their weights, a llama.cpp process, a Model of the port."""
