"""The only wiring: settings and folders into a Stretto, which every surface talks to."""

from stretto.assembly.stretto import Stretto

__all__ = ["Stretto"]
