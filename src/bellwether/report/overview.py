"""A federation at a glance: who holds what, and who comes in the first rounds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bellwether.core.interfaces import Participation
from bellwether.federation import Manifest
from bellwether.federation.groups import Groups, Indices
from bellwether.federation.participation import Incomplete
from bellwether.report.words import span

NAMED = 12
"""So many clients are called by their ids; of more, only the number is said."""


@dataclass(frozen=True, eq=False)
class Overview:
    """What there is to show of a federation before anybody trains."""

    manifest: Manifest
    participation: Participation
    cohorts: Groups
    """Who comes in round 1, 2, ..."""
    class_names: Sequence[str] = ()
    """What label 0, 1 ... stand for; without them the numbers are shown."""

    @property
    def population(self) -> int:
        """N, the number of clients."""
        return len(self.manifest.clients)

    @property
    def headline(self) -> str:
        """Who holds how much, and how like the clients' labels the server's are."""
        manifest = self.manifest
        sizes = manifest.sizes
        each = f"{between(sizes)} each" if sizes.size > 1 else "all of them"
        text = f"{self.population:,} clients hold {sizes.sum():,} samples, {each}"
        if manifest.labels.size:
            text += f", of {between(self.labels_each)} labels"
        if manifest.server is None:
            return f"{text}; the server holds none."
        owned = len(manifest.pool) if manifest.drawn is None else manifest.drawn
        text += f"; the server {'holds' if manifest.drawn is None else 'draws'} {owned:,}"
        text += "" if manifest.drawn is None else " in each round"
        if manifest.similarity is None:
            return f"{text}."
        return f"{text}, and the cosine of its labels with theirs is {manifest.similarity:.3f}."

    @property
    def labels_each(self) -> Indices:
        """How many labels each client has."""
        return np.asarray((self.manifest.labels > 0).sum(axis=1))

    @property
    def coming(self) -> str:
        """How many come in the first rounds, how often, and who never does."""
        times = np.bincount(self.cohorts.samples, minlength=self.population)
        rounds = len(self.cohorts)
        often = "once" if between(times) == "1" else f"{between(times)} times"
        text = (
            f"rounds 1 to {rounds}: {between(self.cohorts.sizes)} clients a round; "
            f"{np.count_nonzero(times):,} of {self.population:,} came, each {often}"
        )
        if isinstance(self.participation, Incomplete):
            absent = self.participation.absentees(self.population, self.manifest.seed)
            named = f": {', '.join(map(str, absent))}" if 0 < len(absent) <= NAMED else ""
            text += f"; {len(absent):,} never do{named}"
        return text


def overview(
    manifest: Manifest, participation: Participation, rounds: int, class_names: Sequence[str] = ()
) -> Overview:
    """The federation of a manifest, with the cohorts that its seed draws for the first rounds."""
    population = len(manifest.clients)
    participation.check(population)
    numbers = range(1, rounds + 1)
    cohorts = [participation.cohort(population, manifest.seed, number, 0) for number in numbers]
    return Overview(manifest, participation, Groups.of(cohorts), tuple(class_names))


def between(values: Indices) -> str:
    """ "20", or "19 to 24"."""
    return span(int(values.min()), int(values.max()))
