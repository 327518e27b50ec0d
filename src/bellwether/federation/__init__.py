"""Who holds what, and who comes."""

from bellwether.federation.federation import Federation, federate
from bellwether.federation.manifest import Manifest

__all__ = ["Federation", "Manifest", "federate"]
