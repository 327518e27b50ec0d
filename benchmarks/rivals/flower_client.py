"""Flower's clients, in a file of their own: Ray's processes import it."""

from collections.abc import Callable
from functools import lru_cache

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from torch import Tensor, nn
from torch.nn import functional

import networks
from workloads import Workload


@lru_cache
def holder(work: Workload) -> Callable[[int], tuple[Tensor, Tensor]]:
    """Every client's data, once in each of Ray's processes."""
    return work.holder(torch.from_numpy)


@lru_cache
def network(work: Workload) -> nn.Module:
    """One in each of Ray's processes."""
    torch.set_num_threads(1)
    return networks.make(work)


def client_app(work: Workload) -> ClientApp:
    """Trains one client as the plain loop does."""
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        model = network(work)
        model.load_state_dict(message.content["arrays"].to_torch_state_dict())
        optimizer = torch.optim.SGD(model.parameters(), lr=work.lr)
        x, y = holder(work)(context.node_config["partition-id"])
        for _ in range(work.epochs):
            for batch in torch.randperm(len(y)).split(work.batch_size):
                optimizer.zero_grad()
                functional.cross_entropy(model(x[batch]), y[batch]).backward()
                optimizer.step()
        records = {
            "arrays": ArrayRecord(model.state_dict()),
            "metrics": MetricRecord({"num-examples": len(y)}),
        }
        return Message(RecordDict(records), reply_to=message)

    return app
