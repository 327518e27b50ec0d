"""Checks for methods, those of this package and your own.

from bellwether.testing import conformance

conformance(MyMethod(SGD(lr=0.05, epochs=2, batch_size=8)))
"""

from bellwether.testing.verdict import Finding, NonConformant, Report, conformance

__all__ = ["Finding", "NonConformant", "Report", "conformance"]
