"""Clients run in this process, one after the other, while their replies are read."""

from collections.abc import Iterator

from bellwether.core.tasks import Exchange, Outcome, Workplace, perform


class Local:
    """The default engine."""

    def start(self, workplace: Workplace) -> None:
        self._workplace = workplace
        self._space = workplace.workspace()

    def run(self, exchange: Exchange) -> Iterator[Outcome]:
        for position in range(len(exchange.cohort)):
            yield perform(self._space, self._workplace, exchange, position)

    def stop(self) -> None:
        del self._workplace, self._space
