"""The only wiring: settings and folders into a Weft, which every surface talks to."""

from weft.assembly.weft import Weft

__all__ = ["Weft"]
