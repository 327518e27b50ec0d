"""Clients run on the machines of a Ray cluster."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from bellwether.core.errors import InputError
from bellwether.core.evaluation import Evaluation, Score
from bellwether.core.stacked.rule import Wish, check_wish, group_size
from bellwether.core.tasks import Exchange, Outcome, Workplace
from bellwether.engines.work import Clients, Pieces

if TYPE_CHECKING:
    from bellwether.engines.ray_crew import Crew


class Ray:
    """Many machines as one: clients run in Ray's actors, in one thread each.

    address: None starts a Ray on this machine and ends it afterwards; "auto" joins the one that
    runs here; "host:port" a cluster that this machine is a node of. A Ray that this process uses
    already is used, and left alone.
    workers: the most actors; "auto" for as many as the cluster has cores (or GPUs, if clients run
    on them). batch_clients: as in `Local`, and with the same bits.
    `with Ray() as engine:` keeps Ray and the actors for several runs, such as those of a study;
    otherwise each run begins and ends them.
    """

    def __init__(
        self, address: str | None = None, *, workers: Wish = "auto", batch_clients: Wish = 1
    ) -> None:
        self.address = check_address(address)
        self.workers = check_wish(workers, "workers")
        self.batch_clients = check_wish(batch_clients)
        self._open = ExitStack()
        self._crew: Crew | None = None
        self._kept = False

    def __repr__(self) -> str:
        return (
            f"Ray({self.address!r}, workers={self.workers!r}, batch_clients={self.batch_clients!r})"
        )

    def __enter__(self) -> Self:
        self._begin()
        self._kept = True
        return self

    def __exit__(self, *_: object) -> None:
        self._kept = False
        self._end()

    def start(self, workplace: Workplace) -> None:
        group = 1
        if self.batch_clients != 1:
            group = group_size(self.batch_clients, workplace.workspace(), workplace)
        crew = self._crew or self._begin()
        try:
            crew.begin(workplace, group)
        except BaseException:
            self.stop()
            raise

    def run(self, exchange: Exchange) -> Iterator[Outcome]:
        assert self._crew
        return self._crew.outcomes(self._crew.submit(Clients(exchange)))

    def scores(self, evaluation: Evaluation) -> Callable[[], Iterable[Score]] | None:
        """Start to evaluate on the actors, if there are any; call the answer for the scores."""
        crew = self._crew
        if crew is None or not crew.at_work:
            return None
        task = crew.submit(Pieces(evaluation))
        return lambda: crew.outcomes(task)

    def stop(self) -> None:
        if self._crew:
            self._crew.finish()
        if not self._kept:
            self._end()

    def _begin(self) -> "Crew":
        try:
            from bellwether.engines.ray_connection import connected
            from bellwether.engines.ray_crew import Crew
        except ImportError as error:
            raise InputError(
                "the engine Ray needs ray; run: pip install 'bellwether-fl[ray]'"
            ) from error
        with ExitStack() as opened:
            opened.enter_context(connected(self.address))
            self._crew = opened.enter_context(Crew(self.workers))
            self._open = opened.pop_all()
        return self._crew

    def _end(self) -> None:
        self._crew = None
        self._open.close()


def check_address(address: object) -> str | None:
    """Where a cluster is, or `InputError`."""
    if address is None or address == "auto":
        return address
    if isinstance(address, str) and "://" not in address:
        host, _, port = address.rpartition(":")
        if host and port.isdecimal() and 0 < int(port) < 2**16:
            return address
    raise InputError(
        f"address must be None, 'auto' or 'host:port' (a cluster's port is 6379 by default),"
        f" not {address!r}"
    )
