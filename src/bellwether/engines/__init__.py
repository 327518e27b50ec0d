"""Where clients run."""

from bellwether.engines.local import Local
from bellwether.engines.ray import Ray

__all__ = ["Local", "Ray"]
