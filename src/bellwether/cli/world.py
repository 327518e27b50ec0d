"""Who holds what and who comes, as options of every command that makes a federation."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Annotated, Any

from typer import Option

from bellwether import data
from bellwether.cli.choices import Choice, choose, numbers
from bellwether.core.dataset import Dataset
from bellwether.core.interfaces import Participation
from bellwether.experiments.config.describe import described
from bellwether.experiments.config.source import Tree
from bellwether.experiments.config.tree import NODES, PARTICIPATION
from bellwether.federation import Federation, federate
from bellwether.federation.participation import (
    Bernoulli,
    Cyclic,
    Fixed,
    Incomplete,
    Markov,
    Uniform,
)
from bellwether.federation.partition import (
    IID,
    Dirichlet,
    DirichletByClass,
    LabelsPerClient,
    Partition,
)
from bellwether.federation.server_data import FromClients, Other, Sample, ServerData, Shifted

COHORT = 4
PARTITIONS: Mapping[str, Choice[Partition]] = {
    "dirichlet": Choice(Dirichlet, {"alpha": "alpha", "samples": "samples"}, {"alpha": 0.2}),
    "iid": Choice(IID, {"samples": "samples"}),
    "labels": Choice(LabelsPerClient, {"labels": "labels", "samples": "samples"}, {"labels": 2}),
    "by-class": Choice(
        DirichletByClass, {"alpha": "alpha", "at_least": "at_least"}, {"alpha": 0.2}
    ),
}


def _sample(overlap: bool = False, **settings: Any) -> Sample:
    amount = settings if {"samples", "fraction"} & settings.keys() else {"samples": 100}
    return Sample(**{**settings, **amount}, disjoint=not overlap)


def _shifted(overlap: bool = False, **settings: Any) -> Shifted:
    return Shifted(**settings, disjoint=not overlap)


_AMOUNT = {
    "samples": "server_samples",
    "fraction": "server_fraction",
    "fresh": "fresh",
    "overlap": "overlap",
}
SERVERS: Mapping[str, Choice[ServerData | None]] = {
    "sample": Choice(_sample, _AMOUNT),
    "shifted": Choice(_shifted, {"cosine": "cosine", **_AMOUNT}, {"cosine": 0.95}),
    "from-clients": Choice(FromClients, {"clients": "server_clients", "samples": "server_samples"}),
    "other": Choice(
        Other,
        {"dataset": "server_data", "samples": "server_samples", "per_label": "server_per_label"},
    ),
    "none": Choice(lambda: None),
}
PARTICIPATIONS: Mapping[str, Choice[Participation]] = {
    "uniform": Choice(Uniform, {"clients": "cohort"}, {"clients": COHORT}),
    "incomplete": Choice(
        Incomplete, {"clients": "cohort", "absent": "absent"}, {"clients": COHORT}
    ),
    "fixed": Choice(Fixed, {"schedule": "schedule"}),
    "bernoulli": Choice(Bernoulli, {"probability": "probability", "clients": "cohort"}),
    "markov": Choice(Markov, {"arrive": "arrive", "leave": "leave", "clients": "cohort"}),
    "cyclic": Choice(Cyclic, {"clients": "cohort"}, {"clients": COHORT}),
}

_HOLDS, _SERVER, _COMES = "Who holds what", "What the server holds", "Who comes"


def _option(panel: str, *names: str, help: str, **rest: Any) -> Any:
    return Option(*names, help=help, rich_help_panel=panel, **rest)


@dataclass(frozen=True)
class World:
    """A data set, how it is shared, and who comes; `None` where an option is not given."""

    dataset: Annotated[
        str,
        _option(
            _HOLDS,
            "--data",
            help="A data set (see: list data), a folder of images, or an .npz archive.",
        ),
    ] = "digits"
    clients: Annotated[int, _option(_HOLDS, min=1, help="N, the population.")] = 60
    partition: Annotated[
        str, _option(_HOLDS, help=f"Who holds which labels: {', '.join(PARTITIONS)}.")
    ] = "dirichlet"
    samples: Annotated[
        int | None,
        _option(
            _HOLDS,
            min=1,
            help="Samples a client (dirichlet, iid, labels); by default as many as fit.",
        ),
    ] = None
    alpha: Annotated[
        float | None,
        _option(_HOLDS, help="Smaller is more skewed (dirichlet, by-class); by default 0.2."),
    ] = None
    labels: Annotated[
        int | None, _option(_HOLDS, help="Labels a client (labels); by default 2.")
    ] = None
    at_least: Annotated[
        int | None, _option(_HOLDS, help="No client has fewer samples (by-class); by default 1.")
    ] = None
    server: Annotated[
        str, _option(_SERVER, help=f"Where its samples come from: {', '.join(SERVERS)}.")
    ] = "sample"
    server_samples: Annotated[
        int | None,
        _option(
            _SERVER,
            min=0,
            help="How many, by default 100; 0 for none. From-clients: of each of these.",
        ),
    ] = None
    server_fraction: Annotated[
        float | None,
        _option(_SERVER, help="Instead: a share of all clients' samples (sample, shifted)."),
    ] = None
    fresh: Annotated[
        bool, _option(_SERVER, "--fresh", help="Draw anew in every round (sample, shifted).")
    ] = False
    overlap: Annotated[
        bool,
        _option(
            _SERVER,
            "--overlap",
            help="Draw from what the clients hold, not from the rest (sample, shifted).",
        ),
    ] = False
    cosine: Annotated[
        float | None,
        _option(_SERVER, help="Of its labels with the clients' labels (shifted); by default 0.95."),
    ] = None
    server_clients: Annotated[
        str | None,
        _option(_SERVER, help="How many clients contribute (from-clients), or ids: 0,7,9."),
    ] = None
    server_data: Annotated[
        str | None, _option(_SERVER, help="Another data set (other), as in list data.")
    ] = None
    server_per_label: Annotated[
        int | None, _option(_SERVER, help="So many of each of its labels (other).")
    ] = None
    participation: Annotated[
        str, _option(_COMES, help=f"Which clients come: {', '.join(PARTICIPATIONS)}.")
    ] = "uniform"
    cohort: Annotated[
        int | None,
        _option(
            _COMES,
            min=1,
            help=f"M, the clients of one round; by default {COHORT}. Bernoulli, markov: at most "
            "so many; by default all who are there.",
        ),
    ] = None
    absent: Annotated[
        str | None,
        _option(_COMES, help="How many clients never come (incomplete), or their ids: 0,7,9."),
    ] = None
    probability: Annotated[
        str | None,
        _option(_COMES, help="That a client is there (bernoulli); with commas, each one's own."),
    ] = None
    arrive: Annotated[
        str | None,
        _option(_COMES, help="Probability that a client who is away comes back (markov)."),
    ] = None
    leave: Annotated[
        str | None, _option(_COMES, help="Probability that a client who is there goes (markov).")
    ] = None
    schedule: Annotated[
        str | None,
        _option(_COMES, help="The cohorts in their order (fixed), as in '0,1;2,3'."),
    ] = None

    @cached_property
    def share(self) -> Partition:
        """The partition."""
        return choose("partition", self.partition, PARTITIONS, asdict(self))

    @cached_property
    def owned(self) -> ServerData | None:
        """The server's data."""
        if self.server_samples == 0:
            return None
        other = data.load(self.server_data) if self.server_data else None
        clients = numbers(self.server_clients, "server_clients", int)
        given = asdict(self) | {"server_data": other, "server_clients": clients}
        return choose("server", self.server, SERVERS, given)

    @cached_property
    def coming(self) -> Participation:
        """The participation."""
        given = asdict(self) | {"absent": numbers(self.absent, "absent", int)}
        for name in ("probability", "arrive", "leave"):
            given[name] = numbers(given[name], name, float)
        if self.schedule:
            cohorts = [cohort for cohort in self.schedule.split(";") if cohort.strip()]
            given["schedule"] = [numbers(f"{ids},", "schedule", int) for ids in cohorts]
        return choose("participation", self.participation, PARTICIPATIONS, given)

    @property
    def tables(self) -> Tree:
        """What it says, as the tables of an experiment's file."""
        owned: Tree | None = None
        if isinstance(self.owned, Other):
            owned = {"kind": "other", "dataset": {"name": self.server_data}}
            given = {"samples": self.owned.samples, "per_label": self.owned.per_label}
            owned |= {name: value for name, value in given.items() if value is not None}
        elif self.owned is not None:
            owned = described(NODES[ServerData], self.owned)
        federation = {"clients": self.clients, "partition": described(NODES[Partition], self.share)}
        return {
            "data": {"name": self.dataset},
            "federation": federation | ({} if owned is None else {"server": owned}),
            "participation": described(PARTICIPATION, self.coming),
        }

    def federate(self, dataset: Dataset, seed: int) -> Federation:
        """The federation of one seed."""
        return federate(
            dataset, clients=self.clients, partition=self.share, server=self.owned, seed=seed
        )
