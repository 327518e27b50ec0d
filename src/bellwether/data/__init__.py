"""Where samples come from: the embedded digits, and image data sets found as files."""

from bellwether.data.catalogue import names
from bellwether.data.loader import load

__all__ = ["load", "names"]
