"""Stretto over HTTP: a thin layer over the public API. Only `stretto serve` imports it."""
