"""Where clients run."""

from bellwether.engines.local import Local

__all__ = ["Local"]
