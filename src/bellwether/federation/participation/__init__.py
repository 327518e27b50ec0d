"""Participation: which clients come in an exchange."""

from bellwether.federation.participation.availability import Bernoulli, Markov
from bellwether.federation.participation.cohorts import Cyclic, Fixed, Incomplete, Uniform

__all__ = ["Bernoulli", "Cyclic", "Fixed", "Incomplete", "Markov", "Uniform"]
