"""A run's parts, timed: what `Profile` counts, where."""

import copy
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field

from bellwether.core.interfaces import Engine, Evaluator
from bellwether.core.participants import Server
from bellwether.core.profile import COPYING, METHOD, SERVER, Profile
from bellwether.core.rounds import Setting
from bellwether.core.tasks import Exchange, Outcome, Workplace
from bellwether.core.vector import Vector


def timed(setting: Setting, profile: Profile) -> Setting:
    """The same setting, whose rounds are timed; the user's objects stay as they are."""
    method = copy.copy(setting.algorithm)
    # Bound to the method itself: workers know its functions by that.
    object.__setattr__(method, "round", profile.wrap(METHOD, setting.algorithm.round))
    values = {f.name: getattr(setting, f.name) for f in dataclasses.fields(setting)}
    values |= {"algorithm": method, "engine": _Timed(setting.engine, profile)}
    return _TimedSetting(**values, profile=profile)


@dataclass(frozen=True)
class _TimedSetting(Setting):
    profile: Profile = field(default_factory=Profile)

    def server(self, round: int, buffers: Vector) -> Server:
        server = super().server(round, buffers)
        self.profile.attend(server, whole=True, gradient=SERVER, descend=SERVER)
        return server


class _Timed:
    """An engine whose outcomes are timed; what it does not time itself is moving messages."""

    def __init__(self, engine: Engine, profile: Profile) -> None:
        self.stop = engine.stop
        self._engine = engine
        self._profile = profile
        self._run = profile.wrap(COPYING, engine.run)
        if isinstance(engine, Evaluator):
            self.scores = engine.scores

    def start(self, workplace: Workplace) -> None:
        self._engine.start(dataclasses.replace(workplace, profile=self._profile))

    def run(self, exchange: Exchange) -> Iterator[Outcome]:
        return self._profile.each(COPYING, self._run(exchange))
