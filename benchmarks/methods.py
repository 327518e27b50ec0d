"""What every method costs over FedAvg, and what evaluation costs, turn by turn.

The arithmetic is counted too: how many samples' gradients a round takes, so that one sees whether
a method's extra time is more than its extra work.
"""

import itertools
import statistics
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import ours
import referee
from bellwether import participation, train
from bellwether.algorithms import CATALOGUE
from bellwether.engines import Local
from contenders import OURS
from referee import Entry, Failed, Plan
from workloads import WORKLOADS, Workload

COUNTED_ROUNDS = 5
EVALUATION = "FedAvg, evaluated"


def measure(workload: str, plan: Plan) -> dict[str, Any]:
    """Every method beside FedAvg."""
    work = WORKLOADS[workload]
    entries = [
        Entry(name, name, OURS.module, ("--method", name)) for name in CATALOGUE if name != "FedAvg"
    ]
    entries.append(Entry(EVALUATION, EVALUATION, OURS.module, ("--evaluate",)))
    base = gradients("FedAvg", work)
    rows: dict[str, Any] = {}
    with referee.running(OURS, workload) as fedavg:
        for entry in entries:
            try:
                with referee.running(entry, workload) as other:
                    pairs = referee.compare(fedavg, other, plan)
            except Failed as failure:
                rows[entry.name] = {"failed": str(failure)}
                print(f"  {entry.title:20s} {failure}")
                continue
            ratios = [b / a for a, b in pairs]
            rows[entry.name] = {"ratios": ratios}
            if entry.name != EVALUATION:
                rows[entry.name]["arithmetic"] = gradients(entry.name, work) / base
            print(
                f"  {entry.title:20s} {referee.spread(ratios)['median']:.3f} x FedAvg", flush=True
            )
    return {"title": work.title, "rows": rows}


def gradients(name: str, work: Workload) -> float:
    """Samples whose gradient the median round takes, the server's too; no matter which network."""
    tiny = replace(work, shape=(1,))
    count, counts = 0, [0]

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        nonlocal count
        count += len(targets) if torch.is_grad_enabled() else 0
        return functional.cross_entropy(outputs, targets)

    train(
        ours.method(name, tiny),
        ours.federation(tiny),
        nn.Linear(1, 10),
        COUNTED_ROUNDS,
        participation=participation.Uniform(tiny.cohort),
        engine=Local(),
        loss=loss,
        eval_every=0,
        on_round=lambda _: counts.append(count),
        device="cpu",
    )
    return statistics.median(after - before for before, after in itertools.pairwise(counts))
