"""Every method once more, in NumPy alone and without a line of the package: a second opinion.

A model is one vector x: softmax regression as nn.Linear flattens it, weight [classes, inputs] row
by row, then bias. A method is a generator that yields an `After` for every cohort of the
`Problem`, in rounds t = 0, 1, ...; its keywords are those of the package's method.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

Vector = np.ndarray
Cohort = Sequence[int]
SERVER = -1
CLASSES, INPUTS = 3, 4
SIZES = (8, 11, 20, 14, 9, 17)


class Data(NamedTuple):
    inputs: np.ndarray
    labels: np.ndarray


class Pass(NamedTuple):
    """How a participant descends: the fields of the package's `SGD`."""

    lr: float
    epochs: int | None = None
    steps: int | None = None
    batch_size: int | None = None
    decay: float = 1.0
    min_lr: float = 0.0
    weight_decay: float = 0.0

    def rate(self, t: int) -> float:
        return min(self.lr, max(self.lr * self.decay**t, self.min_lr))

    def count(self, n: int) -> int:
        """K: epochs x ceil(n / batch size), or what was asked for."""
        if self.steps is not None:
            return self.steps
        return (self.epochs or 0) * -(-n // (self.batch_size or n))


class After(NamedTuple):
    """After a round: the model, and each memory as (the server's, the clients' [N, d])."""

    model: Vector
    kept: Mapping[str, tuple[Vector, np.ndarray]] = MappingProxyType({})


def shuffled(holder: int, t: int, epoch: int, n: int) -> np.ndarray:
    return np.random.default_rng((holder + 1, t + 1, epoch)).permutation(n)


def fair(t: int) -> float:
    return float(np.random.default_rng(t).random())


@dataclass(frozen=True)
class Problem:
    """Who holds what, where the model starts, who comes when, and what chance says."""

    clients: Sequence[Data]
    server: Data | None
    start: Vector
    cohorts: Sequence[Cohort] = ()
    order: Callable[[int, int, int, int], np.ndarray] = shuffled
    """(holder, t, epoch, n) -> in which order the holder takes its n samples."""
    draw: Callable[[int], float] = fair
    """t -> a number between 0 and 1, uniform."""

    def held(self, holder: int) -> Data:
        data = self.server if holder == SERVER else self.clients[holder]
        assert data is not None, "the server has no data"
        return data

    def size(self, holder: int) -> int:
        return len(self.held(holder).labels)

    def batches(self, holder: int, sgd: Pass, t: int) -> list[Data]:
        """The mini-batches of one pass; each epoch has its own order, the last may be short."""
        inputs, labels = self.held(holder)
        n, taken = len(labels), []
        size = min(n, sgd.batch_size or n)
        for step in range(sgd.count(n)):
            epoch, place = divmod(step, -(-n // size))
            chosen = self.order(holder, t, epoch, n)[place * size : (place + 1) * size]
            taken.append(Data(inputs[chosen], labels[chosen]))
        return taken

    def zeros(self) -> tuple[Vector, np.ndarray]:
        """A memory of the server's and one of each client's."""
        return np.zeros(self.start.size), np.zeros((len(self.clients), self.start.size))


def problem(server_samples: int = 12, seed: int = 2) -> Problem:
    """Clients of unequal sizes, each with labels and inputs of its own kind."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(CLASSES, INPUTS))

    def holder(n: int, skew: float) -> Data:
        labels = rng.choice(CLASSES, n, p=rng.dirichlet(np.full(CLASSES, skew)))
        return Data(
            centres[labels] + rng.normal(size=INPUTS) + rng.normal(size=(n, INPUTS)), labels
        )

    start = rng.normal(size=CLASSES * (INPUTS + 1)) / 2
    clients = [holder(n, 0.4) for n in SIZES]
    return Problem(clients, holder(server_samples, 2.0) if server_samples else None, start)


def probabilities(x: Vector, inputs: np.ndarray) -> np.ndarray:
    scores = inputs @ x[: CLASSES * INPUTS].reshape(CLASSES, INPUTS).T + x[CLASSES * INPUTS :]
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def loss(x: Vector, data: Data) -> float:
    """Mean cross-entropy."""
    n = len(data.labels)
    return float(-np.log(probabilities(x, data.inputs)[np.arange(n), data.labels]).mean())


def gradient(x: Vector, data: Data) -> Vector:
    n = len(data.labels)
    error = (probabilities(x, data.inputs) - np.eye(CLASSES)[data.labels]) / n
    return np.concatenate([(error.T @ data.inputs).reshape(-1), error.sum(axis=0)])


class Descent(NamedTuple):
    end: Vector
    change: Vector
    steps: int
    rate: float


Extra = Callable[[Vector, Data], Vector]


def pushed(push: Vector, alpha: float = 0.0) -> Extra:
    """alpha y + push, beside the gradient."""
    return lambda y, batch: alpha * y + push


def reduced(x: Vector, push: Vector) -> Extra:
    """push - g(x; z), beside g(y; z)."""
    return lambda y, batch: push - gradient(x, batch)


def descend(
    p: Problem,
    holder: int,
    x: Vector,
    sgd: Pass,
    t: int,
    extra: Extra | None = None,
    rate: float | None = None,
) -> Descent:
    """y <- y - rate (g(y; batch) + w y + extra), once for every mini-batch."""
    y, rate = x, sgd.rate(t) if rate is None else rate
    taken = p.batches(holder, sgd, t)
    for batch in taken:
        along = gradient(y, batch) + sgd.weight_decay * y
        y = y - rate * (along if extra is None else along + extra(y, batch))
    return Descent(y, y - x, len(taken), rate)


def reported(p: Problem, holder: int, x: Vector, kind: str, sgd: Pass, t: int) -> Vector:
    """What a participant says of x: its full gradient, or its first mini-batch's."""
    return gradient(x, p.held(holder) if kind == "full" else p.batches(holder, sgd, t)[0])


def average(p: Problem, cohort: Cohort, values: Sequence[Vector], weights: str) -> Vector:
    sizes = [p.size(i) for i in cohort] if weights == "samples" else None
    return np.asarray(np.average(values, axis=0, weights=sizes))


def mean_change(
    p: Problem, x: Vector, cohort: Cohort, sgd: Pass, t: int, weights: str = "uniform"
) -> Vector:
    return average(p, cohort, [descend(p, i, x, sgd, t).change for i in cohort], weights)


def fedavg(
    p: Problem, *, client: Pass, global_lr: float = 1.0, weights: str = "uniform"
) -> Iterator[After]:
    x = p.start
    for t, cohort in enumerate(p.cohorts):
        x = x + global_lr * mean_change(p, x, cohort, client, t, weights)
        yield After(x)


def fedavgm(
    p: Problem,
    *,
    client: Pass,
    global_lr: float = 1.0,
    momentum: float = 0.9,
    weights: str = "uniform",
) -> Iterator[After]:
    x, v = p.start, np.zeros(p.start.size)
    for t, cohort in enumerate(p.cohorts):
        v = momentum * v + mean_change(p, x, cohort, client, t, weights)
        x = x + global_lr * v
        yield After(x)


def fedadam(
    p: Problem,
    *,
    client: Pass,
    global_lr: float = 0.1,
    beta1: float = 0.9,
    beta2: float = 0.99,
    tau: float = 1e-3,
    weights: str = "uniform",
) -> Iterator[After]:
    x, m, v = p.start, np.zeros(p.start.size), np.full(p.start.size, tau**2)
    for t, cohort in enumerate(p.cohorts):
        change = mean_change(p, x, cohort, client, t, weights)
        m = beta1 * m + (1 - beta1) * change
        v = beta2 * v + (1 - beta2) * change**2
        x = x + global_lr * m / (np.sqrt(v) + tau)
        yield After(x)


def server_only(p: Problem, *, server: Pass) -> Iterator[After]:
    x = p.start
    for t in range(len(p.cohorts)):
        x = descend(p, SERVER, x, server, t).end
        yield After(x)


def clg_sgd(
    p: Problem, *, client: Pass, server: Pass, global_lr: float = 1.0, weights: str = "uniform"
) -> Iterator[After]:
    x = p.start
    for t, cohort in enumerate(p.cohorts):
        x = x + global_lr * mean_change(p, x, cohort, client, t, weights)
        x = descend(p, SERVER, x, server, t).end
        yield After(x)


def fedclg_c(
    p: Problem,
    *,
    client: Pass,
    server: Pass,
    global_lr: float = 1.0,
    gradient: str = "full",
    weights: str = "uniform",
) -> Iterator[After]:
    x = p.start
    for t, cohort in enumerate(p.cohorts):
        guide, changes = reported(p, SERVER, x, gradient, server, t), []
        for i in cohort:
            correction = guide - reported(p, i, x, gradient, client, t)
            changes.append(descend(p, i, x, client, t, pushed(correction)).change)
        x = x + global_lr * average(p, cohort, changes, weights)
        x = descend(p, SERVER, x, server, t).end
        yield After(x)


def fedclg_s(
    p: Problem,
    *,
    client: Pass,
    server: Pass,
    global_lr: float = 1.0,
    gradient: str = "full",
    count: str = "steps",
    weights: str = "uniform",
) -> Iterator[After]:
    x = p.start
    for t, cohort in enumerate(p.cohorts):
        guide, corrected = reported(p, SERVER, x, gradient, server, t), []
        for i in cohort:
            local = descend(p, i, x, client, t)
            K = local.steps if count == "steps" else client.epochs or 0
            away = guide - reported(p, i, x, gradient, client, t)
            corrected.append(local.change - K * local.rate * away)
        x = x + global_lr * average(p, cohort, corrected, weights)
        x = descend(p, SERVER, x, server, t).end
        yield After(x)


def scaffold(
    p: Problem,
    *,
    client: Pass,
    global_lr: float = 1.0,
    option: int = 2,
    server: Pass | None = None,
    weights: str = "uniform",
) -> Iterator[After]:
    """SCAFFOLD; with a server that trains too, SCAFFOLD+."""
    x, (c, each) = p.start, p.zeros()
    for t, cohort in enumerate(p.cohorts):
        changes, moves = [], []
        for i in cohort:
            local = descend(p, i, x, client, t, pushed(c - each[i]))
            if option == 1:
                new = gradient(x, p.clients[i])
            else:
                new = each[i] - c + (x - local.end) / (local.steps * local.rate)
            changes.append(local.change)
            moves.append(new - each[i])
            each[i] = new
        x = x + global_lr * average(p, cohort, changes, weights)
        c = c + len(cohort) / len(p.clients) * np.mean(moves, axis=0)
        if server is not None:
            x = descend(p, SERVER, x, server, t).end
        yield After(x, {"c": (c, each.copy())})


def pretrained(p: Problem, sgd: Pass | None) -> Vector:
    """x_0 after training on the server's data, before the first round: at the rate itself."""
    return p.start if sgd is None else descend(p, SERVER, p.start, sgd, -1, rate=sgd.lr).end


def derived_epochs(p: Problem, client: Pass) -> Pass:
    """ceil(E_c n / (N n_0)) server epochs; n is the number of all clients' samples."""
    n = sum(p.size(i) for i in range(len(p.clients)))
    epochs = (client.epochs or 0) * n / (len(p.clients) * p.size(SERVER))
    return client._replace(epochs=int(np.ceil(epochs)))


def fsl(
    p: Problem,
    *,
    client: Pass,
    server: Pass | None,
    weight: float = 1.0,
    global_lr: float | None = None,
    derive_rate: bool = True,
    pretrain: Pass | None = None,
    weights: str = "uniform",
    incremental: bool = True,
) -> Iterator[After]:
    """FSL; with incremental=False FSL-p, whose server starts from x_t as the clients do."""
    x = pretrained(p, pretrain)
    server = derived_epochs(p, client) if server is None else server
    for t, cohort in enumerate(p.cohorts):
        eta_g = np.sqrt(len(cohort)) if global_lr is None else global_lr
        locals_ = [descend(p, i, x, client, t) for i in cohort]
        change = average(p, cohort, [local.change for local in locals_], weights)
        eta_0, K_0 = server.rate(t), server.count(p.size(SERVER))
        if derive_rate and K_0:
            travel = np.mean([local.steps for local in locals_]) * eta_g * client.rate(t)
            eta_0 = float(travel / K_0)
        if incremental:
            x = descend(p, SERVER, x + eta_g * change, server, t, rate=weight * eta_0).end
        else:
            own = descend(p, SERVER, x, server, t, rate=eta_0).change
            x = x + (eta_g * change + weight * own) / (1 + weight)
        yield After(x)


def data_sharing(
    p: Problem,
    *,
    client: Pass,
    global_lr: float = 1.0,
    pretrain: Pass | None = None,
    weights: str = "uniform",
) -> Iterator[After]:
    """FedAvg of clients that hold D_i united with D_0, the server's samples last."""
    more = [] if p.server is None else [p.server]
    united = [Data(*map(np.concatenate, zip(own, *more, strict=True))) for own in p.clients]
    together = replace(p, clients=united, start=pretrained(p, pretrain))
    return fedavg(together, client=client, global_lr=global_lr, weights=weights)


def feddyn(
    p: Problem, *, client: Pass, alpha: float = 0.01, weights: str = "uniform"
) -> Iterator[After]:
    x, (h, each) = p.start, p.zeros()
    for t, cohort in enumerate(p.cohorts):
        ends = []
        for i in cohort:
            local = descend(p, i, x, client, t, pushed(-each[i] - alpha * x, alpha))
            each[i] -= alpha * local.change
            ends.append(local.end)
        h = h - alpha / len(p.clients) * np.sum([y - x for y in ends], axis=0)
        x = average(p, cohort, ends, weights) - h / alpha
        yield After(x, {"h": (h, each.copy())})


def feddc(
    p: Problem,
    *,
    client: Pass,
    alpha: float = 0.01,
    weights: str = "uniform",
    linear: bool = True,
) -> Iterator[After]:
    """FedDC; linear=False leaves s - s_i out."""
    x, (H, drift), (s, each) = p.start, p.zeros(), p.zeros()
    for t, cohort in enumerate(p.cohorts):
        ends, moves = [], []
        for i in cohort:
            push = alpha * (drift[i] - x) + linear * (s - each[i])
            local = descend(p, i, x, client, t, pushed(push, alpha))
            drift[i] += local.change
            new = each[i] - s + (x - local.end) / (local.steps * local.rate)
            ends.append(local.end)
            moves.append(new - each[i])
            each[i] = new
        H = H + np.sum([y - x for y in ends], axis=0) / len(p.clients)
        s = s + np.sum(moves, axis=0) / len(p.clients)
        x = average(p, cohort, ends, weights) + H
        yield After(x, {"H": (H, drift.copy()), "s": (s, each.copy())})


def safari(
    p: Problem, *, client: Pass, server: Pass, q: float = 0.8, weights: str = "uniform"
) -> Iterator[After]:
    x = p.start
    for t, cohort in enumerate(p.cohorts):
        if p.draw(t) < q:
            x = x + mean_change(p, x, cohort, client, t, weights)
        else:
            x = descend(p, SERVER, x, server, t).end
        yield After(x)


def parts(blocks: Sequence[slice], shared: slice, members: int) -> list[tuple[slice, range]]:
    """Every part of the vector, with the positions in the cohort that send it."""
    own = [(block, range(j, members, len(blocks))) for j, block in enumerate(blocks)]
    return [*own, (shared, range(members))]


def fedbcgd(
    p: Problem,
    *,
    client: Pass,
    blocks: Sequence[slice],
    shared: slice,
    momentum: float = 0.9,
    weights: str = "uniform",
) -> Iterator[After]:
    x, v = p.start, np.zeros(p.start.size)
    for t, cohort in enumerate(p.cohorts):
        ends = np.array([descend(p, i, x, client, t).end for i in cohort])
        received = np.zeros(x.size)
        for part, senders in parts(blocks, shared, len(cohort)):
            received[part] = average(p, [cohort[i] for i in senders], ends[senders], weights)[part]
        v = momentum * v + (received - x)
        x = x + v
        yield After(x)


def fedbcgd_plus(
    p: Problem,
    *,
    client: Pass,
    blocks: Sequence[slice],
    shared: slice,
    momentum: float = 0.9,
    weights: str = "uniform",
) -> Iterator[After]:
    x, v, (c, each) = p.start, np.zeros(p.start.size), p.zeros()
    for t, cohort in enumerate(p.cohorts):
        full = [gradient(x, p.clients[i]) for i in cohort]
        extras = [reduced(x, g + c - each[i]) for g, i in zip(full, cohort, strict=True)]
        ends = np.array(
            [descend(p, i, x, client, t, e).end for i, e in zip(cohort, extras, strict=True)]
        )
        received, change = np.zeros(x.size), np.zeros(x.size)
        for part, senders in parts(blocks, shared, len(cohort)):
            received[part] = average(p, [cohort[i] for i in senders], ends[senders], weights)[part]
            for position in senders:
                i, new = cohort[position], full[position][part]
                change[part] += new - each[i][part]
                each[i][part] = new
        v = momentum * v + (received - x)
        x, c = x + v, c + change / len(p.clients)
        yield After(x, {"c": (c, each.copy())})


def trust(change: Vector, own: Vector) -> float:
    """max(0, cos(change, own)); 0 where one of them is zero."""
    lengths = np.linalg.norm(change) * np.linalg.norm(own)
    return max(0.0, float(change @ own / lengths)) if lengths else 0.0


def fltrust(p: Problem, *, client: Pass, server: Pass, global_lr: float = 1.0) -> Iterator[After]:
    x = p.start
    for t, cohort in enumerate(p.cohorts):
        own = descend(p, SERVER, x, server, t).change
        total, mass = np.zeros(x.size), 0.0
        for change in (descend(p, i, x, client, t).change for i in cohort):
            s = trust(change, own)
            if s:
                total += s * np.linalg.norm(own) / np.linalg.norm(change) * change
                mass += s
        x = x + global_lr * total / mass if mass else x
        yield After(x)
