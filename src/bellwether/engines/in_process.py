"""Clients at work in this process, one group after the other."""

import copy
import dataclasses
from collections.abc import Sequence
from typing import Any

from bellwether.core.profile import COPYING, GRADIENTS, LOADING, STEPS, Profile
from bellwether.core.stacked.clients import Stacks, perform_group
from bellwether.core.stacked.space import StackedSpace
from bellwether.core.tasks import Exchange, Outcome, Workplace
from bellwether.engines.jobs import Group
from bellwether.engines.work import Kept, Work


class InProcess:
    """Where this process performs tasks; timed if the workplace has a profile."""

    def __init__(self, workplace: Workplace) -> None:
        self.space = workplace.workspace()
        self._stacks = Stacks(self.space)
        self._workplace = workplace
        if workplace.profile:
            self._watch(workplace.profile)

    def perform(self, exchange: Exchange, group: Group) -> list[Outcome]:
        """The tasks of some members of a cohort."""
        return perform_group(self._stacks, self._workplace, exchange, group)

    def do(self, work: Work, group: Group, kept: Kept) -> Sequence[Any]:
        """A group of a work."""
        return work.done(self._stacks, self._workplace, group, kept)

    def _watch(self, profile: Profile) -> None:
        federation = copy.copy(self._workplace.federation)  # the user's own stays as it is
        profile.attend(federation, client=LOADING, server=LOADING)
        self._workplace = dataclasses.replace(self._workplace, federation=federation)
        profile.attend(self.space, backward=GRADIENTS, admit=LOADING)
        profile.attend(self.space, load=COPYING, read_buffers=COPYING)
        profile.attend(self, perform=STEPS, do=STEPS)
        stacked = self._stacks.of

        def of(clients: int) -> StackedSpace:
            space = stacked(clients)
            if "backward" not in vars(space):
                profile.attend(space, backward=GRADIENTS, mean_gradient=GRADIENTS, load=COPYING)
            return space

        self._stacks.of = of  # type: ignore[method-assign]
