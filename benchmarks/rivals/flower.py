"""Flower as a contender: its simulation on Ray, one CPU a client, so two at a time."""

import os
import time
from collections.abc import Iterable
from pathlib import Path

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

from flwr.app import ArrayRecord, Context, Message, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

import networks
import turns
from rivals.flower_client import client_app, holder


class Turning(FedAvg):
    """Calls when a round's replies are averaged."""

    turn: turns.Turns

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        averaged = super().aggregate_train(server_round, replies)
        try:
            self.turn()
        except KeyboardInterrupt:  # in a thread of Flower's; the referee ends Ray
            os._exit(0)
        return averaged


def main() -> None:
    given = turns.arguments(__doc__).parse_args()
    work, turn = turns.workload(given), turns.Turns()
    # Ray's processes import the client by name.
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[1])
    if work.clients > 100_000:
        turn.cannot("keeps a node for each client; 100,000 already take seconds a round")
    started = time.perf_counter()
    holder(work)  # measured here, made again in each of Ray's processes
    turn.ready(["flwr", "ray", "torch", "numpy"], time.perf_counter() - started)
    app = ServerApp()

    @app.main()
    def serve(grid: Grid, context: Context) -> None:
        share = (work.cohort + 0.5) / work.clients
        strategy = Turning(
            fraction_train=share, fraction_evaluate=0.0, min_available_nodes=work.clients
        )
        strategy.turn = turn
        arrays = ArrayRecord(networks.make(work).state_dict())
        strategy.start(grid, arrays, num_rounds=turns.FOREVER)

    run_simulation(
        app,
        client_app(work),
        num_supernodes=work.clients,
        backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}},
    )


if __name__ == "__main__":
    main()
