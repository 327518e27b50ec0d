"""Write the cost tables of docs/methods/ from what the methods do: `python docs/generate.py`.

Each method trains a small model for some rounds, with one epoch and with two; what it sends, keeps
and computes is counted, and the text between the markers of each page is replaced.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from bellwether import SGD, Algorithm, Federation, RoundRecord, participation, train
from bellwether.algorithms import CATALOGUE, create
from bellwether.core.participants import Server
from bellwether.core.tasks import Exchange, Outcome
from bellwether.engines import Local

PAGES = Path(__file__).parent / "methods"
START, END = "<!-- costs -->", "<!-- /costs -->"
CLIENTS, COHORT, SAMPLES = 6, 4, 8
ROUNDS = 8
"""Enough for SAFARI to have rounds of both kinds."""


@dataclass(frozen=True)
class Costs:
    """Of one method; vectors count in models of d numbers, gradients in passes over the data."""

    down: str
    up: str
    client_passes: str
    server_passes: str
    memory: str
    state: str
    server_data: str


ROWS = {
    "down": "sent to each client of a round",
    "up": "sent back by each client",
    "client_passes": "gradient passes over a client's data, E epochs",
    "server_passes": "gradient passes over the server's data, E_s epochs",
    "memory": "kept by each client",
    "state": "kept by the server",
    "server_data": "server data",
}


def filename(method: str) -> str:
    """FSL-p's page is fsl-p.md."""
    return method.lower().replace(" ", "-").replace("+", "-plus") + ".md"


def network() -> nn.Sequential:
    """Large enough for the framing of messages not to show."""
    return nn.Sequential(nn.Linear(40, 100), nn.ReLU(), nn.Linear(100, 40))


class Counter(Local):
    """The loss and the engine in one: counts the samples whose gradient is taken, by whom."""

    def __init__(self) -> None:
        self.all = 0
        self.clients = 0
        self.tasks = 0

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Cross-entropy, counted where a gradient will be taken."""
        self.all += len(targets) if torch.is_grad_enabled() else 0
        return functional.cross_entropy(outputs, targets)

    def run(self, exchange: Exchange) -> Iterator[Outcome]:
        outcomes = super().run(exchange)
        while True:
            before = self.all
            outcome = next(outcomes, None)
            if outcome is None:
                return
            self.clients += self.all - before
            self.tasks += 1
            yield outcome


@dataclass(frozen=True)
class Work:
    """Passes over what it trains on: of a client in a round, of the server in its busiest."""

    client: float
    server: float
    records: list[RoundRecord]


def method(name: str, epochs: int) -> Algorithm[Any]:
    """The method with as many epochs at the clients and at the server."""
    sgd = SGD(lr=0.01, epochs=epochs, batch_size=4)
    return create(name, client=sgd, server=sgd)


def work(algorithm: Algorithm[Any]) -> Work:
    """What the rounds cost."""
    draw = torch.Generator().manual_seed(0)

    def held() -> tuple[Tensor, Tensor]:
        inputs = torch.randn(SAMPLES, 40, generator=draw)
        return inputs, torch.randint(40, (SAMPLES,), generator=draw)

    counter, seen, servers = Counter(), [0], [0]
    federation = Federation.from_arrays([held() for _ in range(CLIENTS)], held())

    def at_server(record: RoundRecord) -> None:
        seen.append(counter.all - counter.clients)
        servers.append(seen[-1] - seen[-2])

    result = train(
        algorithm,
        federation,
        network,
        ROUNDS,
        participation=participation.Uniform(COHORT),
        engine=counter,
        loss=counter.loss,
        on_round=at_server,
        device="cpu",
    )
    trained_on = SAMPLES * (2 if algorithm.shares_server_data else 1)
    each = counter.clients / (trained_on * max(counter.tasks, 1))
    return Work(each, max(servers) / SAMPLES, result.history)


def costs(name: str) -> Costs:
    """Measured."""
    algorithm = method(name, 1)
    one, two = work(algorithm), work(method(name, 2))
    d = sum(p.numel() for p in network().parameters())
    asked = sum(len(r.cohort) for r in one.records)
    sizes = [sum(getattr(r, way) for r in one.records) for way in ("bytes_down", "bytes_up")]
    down, up = (size / (4 * d * max(asked, 1)) for size in sizes)
    server: Any = Server  # `start` without pre-training does not ask it
    state = algorithm.start(torch.zeros(d), server)
    kept = sum(isinstance(getattr(state, f.name), Tensor) for f in fields(state))
    memory = len(fields(algorithm.memory)) if algorithm.memory else 0
    return Costs(
        down=_models(down),
        up=_models(up),
        client_passes=_passes(one.client, two.client, "E"),
        server_passes=_passes(one.server, two.server, "E_s"),
        memory=_models(memory),
        state=_models(kept),
        server_data=(
            "needed"
            if algorithm.needs_server_data
            else "given to the clients"
            if algorithm.shares_server_data
            else "not used"
        ),
    )


def page(text: str, table: str) -> str:
    """The page with the table between its markers."""
    before, rest = text.split(START)
    _, after = rest.split(END)
    return f"{before}{START}\n{table}\n{END}{after}"


def table_of(cost: Costs) -> str:
    """One method's table."""
    rows = [f"| {what} | {getattr(cost, key)} |" for key, what in ROWS.items()]
    return "\n".join(["| cost in a round | |", "|---|---|", *rows])


def table_of_all(all_costs: dict[str, Costs]) -> str:
    """The table of the index."""
    titles = ["method", "down", "up", "client work", "server work", "client keeps", "server keeps"]
    lines = ["| " + " | ".join([*titles, "server data"]) + " |", "|---" * 8 + "|"]
    for name, cost in all_costs.items():
        values = [getattr(cost, key) for key in ROWS]
        lines.append("| " + " | ".join([f"[{name}]({filename(name)})", *values]) + " |")
    return "\n".join(lines)


def pages() -> dict[Path, str]:
    """Every page as it should be."""
    all_costs = {name: costs(name) for name in CATALOGUE}
    tables = {PAGES / filename(name): table_of(cost) for name, cost in all_costs.items()}
    tables[PAGES / "README.md"] = table_of_all(all_costs)
    return {path: page(path.read_text(), table) for path, table in tables.items()}


def _models(count: float) -> str:
    quarters = Fraction(round(4 * count), 4)
    if not quarters:
        return "nothing"
    return "d" if quarters == 1 else f"{quarters} d"


def _passes(one: float, two: float, epochs: str) -> str:
    slope, once = round(two - one), round(2 * one - two)
    if not slope and not once:
        return "none"
    per_epoch = {0: "", 1: epochs}.get(slope, f"{slope} {epochs}")
    return " + ".join(part for part in (per_epoch, str(once) if once else "") if part)


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text)
