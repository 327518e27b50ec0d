"""An experiment: one method on one federation, as its file says."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from torch import nn

from bellwether import data, models
from bellwether.core.algorithm import Algorithm, check_cohort, check_settings
from bellwether.core.dataset import Dataset
from bellwether.core.errors import InputError, check_fraction
from bellwether.core.interfaces import Engine, Participation
from bellwether.core.workspace import Loss, Regularised, default_loss
from bellwether.data.validation import hold_out
from bellwether.federation import Federation, federate
from bellwether.federation.checks import whole
from bellwether.federation.server_data import ServerData
from bellwether.models import losses


@dataclass(frozen=True)
class DataSource:
    """A data set by its name or path, with all its labels or two."""

    name: str = "digits"
    root: str | None = None
    classes: int | None = None
    one_against_rest: int | None = None

    def load(self) -> Dataset:
        """Read it."""
        dataset = data.load(self.name, self.root, classes=self.classes)
        if self.one_against_rest is None:
            return dataset
        return data.one_against_rest(dataset, self.one_against_rest)


@dataclass(frozen=True)
class ExperimentData(DataSource):
    """The samples that clients and server share, and those that the model is measured on."""

    validation: float | None = None

    def __post_init__(self) -> None:
        if self.validation is not None:
            check_fraction(validation=self.validation)

    def split(self, dataset: Dataset, seed: int) -> Dataset:
        """The data set as it is used: with a validation share in place of its test samples."""
        return dataset if not self.validation else hold_out(dataset, self.validation, seed)


@dataclass(frozen=True)
class Network:
    """A network by its name, and the arguments of its factory that do not follow from the data."""

    name: str
    settings: Mapping[str, Any]

    def maker(self, dataset: Dataset) -> Callable[[], nn.Module]:
        """The function that makes it for these data."""
        shape, classes = tuple(dataset.train.inputs.shape[1:]), len(dataset.classes)
        if not classes:
            labels = dataset.train.class_labels
            classes = 1 if labels is None else 1 + int(labels.max())
        return lambda: models.create(self.name, shape, classes, **self.settings)


@dataclass(frozen=True)
class Objective:
    """The mean loss, and an L2 term."""

    kind: Literal["auto", "logistic", "sigmoid"] = "auto"
    l2: float = 0.0

    def __post_init__(self) -> None:
        self.on(None)

    def on(self, dataset: Dataset | None) -> Loss | Regularised | None:
        """As `train` takes it, for these data."""
        known: dict[str, Loss] = {"logistic": losses.logistic, "sigmoid": losses.sigmoid}
        loss = known.get(self.kind)
        if loss is None and dataset is not None and self.l2:
            loss = default_loss(dataset.train)
        return Regularised(loss or losses.logistic, self.l2) if self.l2 else loss


@dataclass(frozen=True)
class Experiment:
    """What a file describes, made: nothing is loaded before it is asked for."""

    title: str
    data: ExperimentData
    federation: Mapping[str, Any]
    """The arguments of `federate`; the server's data may be a function that loads them."""
    participation: Participation
    model: Network
    loss: Objective
    algorithm: Algorithm[Any]
    training: Mapping[str, Any]
    """Arguments of `train`, and the target."""
    engine: Engine

    def __post_init__(self) -> None:
        clients, training = self.federation["clients"], self.training
        with _about("federation"):
            whole(clients, "clients", 1)
        with _about("training"):
            for name in ("rounds", "seed", "eval_every", "diagnose_every", "checkpoint_every"):
                whole(training[name], name, int(name == "checkpoint_every"))
        if self.algorithm.needs_server_data and self.federation["server"] is None:
            raise InputError(
                f"[algorithm] {type(self.algorithm).__name__} needs data at the server; add "
                '[federation.server], such as kind = "sample" with samples = 100'
            )
        with _about("participation"):
            self.participation.check(clients)
            cohort = self.participation.cohort(clients, training["seed"], 1, 0)
        with _about("algorithm"):
            check_settings(self.algorithm)
            if self.algorithm.smallest_cohort:
                check_cohort(self.algorithm, len(cohort))

    @cached_property
    def dataset(self) -> Dataset:
        """The samples as they are used."""
        return self.data.split(self.data.load(), self.training["seed"])

    def federate(self) -> Federation:
        """Who holds what."""
        server: ServerData | Callable[[], ServerData] | None = self.federation["server"]
        owned = server() if callable(server) else server
        settings = {**self.federation, "server": owned, "seed": self.training["seed"]}
        return federate(self.dataset, **settings)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `train`."""
        training = {name: value for name, value in self.training.items() if name != "target"}
        return {
            "algorithm": self.algorithm,
            "federation": self.federate(),
            "model": self.model.maker(self.dataset),
            "participation": self.participation,
            "loss": self.loss.on(self.dataset),
            "engine": self.engine,
            **training,
        }

    def on(self, engine: Engine) -> "Experiment":
        """The same experiment elsewhere; the results do not depend on it."""
        return replace(self, engine=engine)


@contextmanager
def _about(table: str) -> Iterator[None]:
    """Say in which table of the file it is what is refused."""
    try:
        yield
    except InputError as error:
        raise InputError(f"[{table}] {error}") from error
