"""Partitions: how the clients share the samples of one data set."""

from bellwether.federation.partition.base import Partition, Shares
from bellwether.federation.partition.by_class import DirichletByClass
from bellwether.federation.partition.equal import IID, Dirichlet
from bellwether.federation.partition.flower import FromFlower
from bellwether.federation.partition.labels_per_client import LabelsPerClient

__all__ = [
    "IID",
    "Dirichlet",
    "DirichletByClass",
    "FromFlower",
    "LabelsPerClient",
    "Partition",
    "Shares",
]
