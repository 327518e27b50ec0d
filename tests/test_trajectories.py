"""Every method round by round against an independent reference, and that reference's own proof."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import bellwether
import reference
from bellwether import SGD, Federation, RoundRecord, participation, train
from bellwether.core import streams
from reference import After, Pass, Problem, Vector

SEED, ROUNDS = 0, 5
Method = Callable[..., Iterator[After]]
Arguments = dict[str, Any]


@dataclass(frozen=True)
class Situation:
    """Who comes and how both sides descend."""

    client: Pass
    server: Pass
    cohorts: Sequence[Sequence[int]] = ((4, 1), (0, 5), (2, 3), (1, 0), (5, 4))
    crowds: Sequence[Sequence[int]] = ((4, 1, 3, 0), (0, 5, 2, 4), (2, 3, 1, 5), (1, 0, 4, 3))
    """The cohorts of methods that need a client for every block; () where there are none."""
    server_samples: int = 12


CLIENT, SERVER = Pass(0.2, epochs=4, decay=0.9), Pass(0.15, steps=3, decay=0.8)
FLOORED = CLIENT._replace(decay=0.5, min_lr=0.07, weight_decay=0.1)  # from round 3 on
RAISED = SERVER._replace(decay=0.5, min_lr=0.3, weight_decay=0.2)  # above the rate: no decay
SITUATIONS = {
    "two come": Situation(CLIENT, SERVER),
    "weight decay": Situation(FLOORED, RAISED),
    "one always, one once": Situation(
        CLIENT,
        SERVER,
        ((2, 0), (2, 1), (5, 2), (2, 1), (0, 2)),
        ((2, 0, 1, 4), (3, 2, 1, 4), (0, 1, 2, 5), (1, 5, 2, 0), (4, 0, 5, 2)),
    ),
    "one comes": Situation(CLIENT, SERVER, ((3,), (0,), (3,), (5,), (3,)), ()),
    "one server sample": Situation(CLIENT, SERVER, server_samples=1),
    "mini-batches": Situation(
        Pass(0.1, epochs=2, batch_size=5, decay=0.9),
        Pass(0.15, epochs=2, batch_size=8, decay=0.8, weight_decay=0.1),
    ),
    "steps": Situation(
        Pass(0.1, steps=5, batch_size=6, decay=0.9, weight_decay=0.1),
        Pass(0.15, steps=3, batch_size=5),
    ),
}


@dataclass(frozen=True)
class Case:
    """A method of the package by its name, its reference, and settings beside the two `SGD`s."""

    name: str
    method: Method
    settings: Arguments
    sides: str = "both"
    counts_epochs: bool = False
    """Whether the client's descent must be counted in epochs."""
    alone: bool = False
    """Whether the server has no data: then this must work without."""

    @property
    def blocks(self) -> bool:
        return "blocks" in self.settings

    def fits(self, situation: Situation) -> bool:
        return not (
            (self.counts_epochs and situation.client.epochs is None)
            or (self.blocks and not situation.crowds)
            or (self.alone and situation.server_samples == 1)
        )

    def arguments(self, situation: Situation) -> Arguments:
        sides = {"client": situation.client, "server": situation.server}
        own = sides if self.sides == "both" else {self.sides: sides[self.sides]}
        return own | self.settings


clients_only = partial(Case, sides="client", alone=True)
FSLP = partial(reference.fsl, incremental=False)
STILL = Pass(0.0, epochs=1)
PRETRAIN = Pass(0.3, steps=3, decay=0.5, weight_decay=0.1)
THREE: Arguments = {"blocks": [slice(0, 5), slice(5, 9), slice(9, 12)], "shared": slice(12, 15)}
TWO: Arguments = {"blocks": [slice(7, 15), slice(0, 4)], "shared": slice(4, 7), "momentum": 0.4}
CASES = {
    "FedAvg": clients_only("FedAvg", reference.fedavg, {}),
    "FedAvg, samples": clients_only(
        "FedAvg", reference.fedavg, {"global_lr": 0.7, "weights": "samples"}
    ),
    "FedAvgM": clients_only("FedAvgM", reference.fedavgm, {}),
    "FedAvgM, settings": clients_only(
        "FedAvgM", reference.fedavgm, {"global_lr": 0.7, "momentum": 0.4}
    ),
    "FedAvgM, samples": clients_only("FedAvgM", reference.fedavgm, {"weights": "samples"}),
    "FedAdam": clients_only("FedAdam", reference.fedadam, {}),
    "FedAdam, settings": clients_only(
        "FedAdam", reference.fedadam, {"global_lr": 0.3, "beta1": 0.6, "beta2": 0.8, "tau": 0.1}
    ),
    "FedAdam, samples": clients_only("FedAdam", reference.fedadam, {"weights": "samples"}),
    "ServerOnly": Case("ServerOnly", reference.server_only, {}, "server"),
    "CLGSGD": Case("CLGSGD", reference.clg_sgd, {}),
    "CLGSGD, samples": Case("CLGSGD", reference.clg_sgd, {"global_lr": 0.7, "weights": "samples"}),
    "FedCLGC": Case("FedCLGC", reference.fedclg_c, {}),
    "FedCLGC, step": Case("FedCLGC", reference.fedclg_c, {"global_lr": 0.7}),
    "FedCLGC, samples": Case("FedCLGC", reference.fedclg_c, {"weights": "samples"}),
    "FedCLGC, batch": Case("FedCLGC", reference.fedclg_c, {"gradient": "batch"}),
    "FedCLGS": Case("FedCLGS", reference.fedclg_s, {}),
    "FedCLGS, step": Case("FedCLGS", reference.fedclg_s, {"global_lr": 0.7}),
    "FedCLGS, samples": Case("FedCLGS", reference.fedclg_s, {"weights": "samples"}),
    "FedCLGS, batch": Case("FedCLGS", reference.fedclg_s, {"gradient": "batch"}),
    "FedCLGS, epochs": Case("FedCLGS", reference.fedclg_s, {"count": "epochs"}, counts_epochs=True),
    "Scaffold": clients_only("Scaffold", reference.scaffold, {}),
    "Scaffold, option 1": clients_only(
        "Scaffold", reference.scaffold, {"global_lr": 0.7, "option": 1}
    ),
    "Scaffold, samples": clients_only("Scaffold", reference.scaffold, {"weights": "samples"}),
    "ScaffoldPlus": Case("ScaffoldPlus", reference.scaffold, {}),
    "ScaffoldPlus, option 1": Case(
        "ScaffoldPlus", reference.scaffold, {"global_lr": 0.7, "option": 1}
    ),
    "ScaffoldPlus, samples": Case("ScaffoldPlus", reference.scaffold, {"weights": "samples"}),
    "FSL": Case("FSL", reference.fsl, {}),
    "FSL, settings": Case("FSL", reference.fsl, {"weight": 0.6, "global_lr": 0.7}),
    "FSL, samples": Case("FSL", reference.fsl, {"weights": "samples"}),
    "FSL, server's rate": Case("FSL", reference.fsl, {"weight": 0.6, "derive_rate": False}),
    "FSL, derived epochs": Case("FSL", reference.fsl, {"server": None}, counts_epochs=True),
    "FSL, pretrained": Case("FSL", reference.fsl, {"pretrain": PRETRAIN}),
    "FSL, weight 0": Case("FSL", reference.fsl, {"weight": 0.0}),
    "FSLP": Case("FSLP", FSLP, {}),
    "FSLP, settings": Case("FSLP", FSLP, {"weight": 0.6, "global_lr": 0.7}),
    "FSLP, samples": Case("FSLP", FSLP, {"weights": "samples"}),
    "FSLP, server's rate": Case("FSLP", FSLP, {"weight": 0.6, "derive_rate": False}),
    "FSLP, derived epochs": Case("FSLP", FSLP, {"server": None}, counts_epochs=True),
    "FSLP, pretrained": Case("FSLP", FSLP, {"pretrain": PRETRAIN}),
    "DataSharing": Case("DataSharing", reference.data_sharing, {}, sides="client"),
    "DataSharing, samples": Case(
        "DataSharing",
        reference.data_sharing,
        {"global_lr": 0.7, "weights": "samples"},
        sides="client",
    ),
    "DataSharing, pretrained": Case(
        "DataSharing", reference.data_sharing, {"pretrain": PRETRAIN}, sides="client"
    ),
    "DataSharing, nothing to share": clients_only("DataSharing", reference.data_sharing, {}),
    "FedDyn": clients_only("FedDyn", reference.feddyn, {}),
    "FedDyn, alpha": clients_only("FedDyn", reference.feddyn, {"alpha": 0.5}),
    "FedDyn, samples": clients_only("FedDyn", reference.feddyn, {"weights": "samples"}),
    "FedDC": clients_only("FedDC", reference.feddc, {}),
    "FedDC, alpha": clients_only("FedDC", reference.feddc, {"alpha": 0.5}),
    "FedDC, samples": clients_only("FedDC", reference.feddc, {"weights": "samples"}),
    "Safari": Case("Safari", reference.safari, {}),
    "Safari, q": Case("Safari", reference.safari, {"q": 0.4}),
    "Safari, samples": Case("Safari", reference.safari, {"weights": "samples"}),
    "FedBCGD": clients_only("FedBCGD", reference.fedbcgd, THREE),
    "FedBCGD, two blocks": clients_only("FedBCGD", reference.fedbcgd, TWO),
    "FedBCGD, samples": clients_only(
        "FedBCGD", reference.fedbcgd, TWO | {"momentum": 0.6, "weights": "samples"}
    ),
    "FedBCGDPlus": clients_only("FedBCGDPlus", reference.fedbcgd_plus, THREE),
    "FedBCGDPlus, two blocks": clients_only("FedBCGDPlus", reference.fedbcgd_plus, TWO),
    "FedBCGDPlus, samples": clients_only(
        "FedBCGDPlus", reference.fedbcgd_plus, TWO | {"momentum": 0.6, "weights": "samples"}
    ),
    "FLTrust": Case("FLTrust", reference.fltrust, {}),
    "FLTrust, step": Case("FLTrust", reference.fltrust, {"global_lr": 0.7}),
    "FLTrust, a still server": Case("FLTrust", reference.fltrust, {"server": STILL}),
    "FLTrust, still clients": Case("FLTrust", reference.fltrust, {"client": STILL}),
}


def order(holder: int, t: int, epoch: int, n: int) -> np.ndarray:
    """The order of the package's mini-batches; the server's id is the same there."""
    stream = streams.key(SEED, "batches", t + 1, 0, holder, 0)
    return streams.permutation(stream, epoch, n).numpy()


def draw(t: int) -> float:
    return float(streams.generator(SEED, "method", t + 1).random())


def posed(case: Case, situation: Situation) -> Problem:
    cohorts = situation.crowds if case.blocks else situation.cohorts
    scheduled = [cohorts[t % len(cohorts)] for t in range(ROUNDS)]
    p = reference.problem(0 if case.alone else situation.server_samples)
    return replace(p, cohorts=scheduled, order=order, draw=draw)


def models(rounds: Iterator[After]) -> list[Vector]:
    return [after.model for after in rounds]


def trained(name: str, arguments: Arguments, p: Problem) -> list[Vector]:
    """The models that the package's method of this name goes through."""

    def module() -> nn.Module:
        linear = nn.Linear(reference.INPUTS, reference.CLASSES).double()
        nn.utils.vector_to_parameters(torch.from_numpy(p.start.copy()), linear.parameters())
        return linear

    given = {k: SGD(**v._asdict()) if isinstance(v, Pass) else v for k, v in arguments.items()}
    seen: list[Vector] = []

    def see(record: RoundRecord) -> None:
        assert record.model is not None
        seen.append(record.model.numpy().copy())

    train(
        getattr(bellwether, name)(**given),
        Federation.from_arrays(clients=p.clients, server=p.server),
        module,
        len(p.cohorts),
        participation=participation.Fixed(p.cohorts),
        seed=SEED,
        on_round=see,
        device="cpu",
    )
    return seen


def apart(left: Sequence[Vector], right: Sequence[Vector]) -> float:
    """The largest relative distance between two trajectories."""
    pairs = zip(left, right, strict=True)
    return max(float(np.linalg.norm(a - b) / np.linalg.norm(b)) for a, b in pairs)


CHECKS = [(n, s) for s in SITUATIONS for n in CASES if CASES[n].fits(SITUATIONS[s])]


@pytest.mark.parametrize(("name", "situation"), CHECKS)
def test_the_package_computes_what_the_reference_does(name: str, situation: str) -> None:
    case, p = CASES[name], posed(CASES[name], SITUATIONS[situation])
    arguments = case.arguments(SITUATIONS[situation])
    assert apart(trained(case.name, arguments, p), models(case.method(p, **arguments))) < 1e-10


ALWAYS_SAME = [
    {"FedAvg", "DataSharing, nothing to share"},
    {"FLTrust, a still server", "FLTrust, still clients"},
]
SAME = {
    "mini-batches": ALWAYS_SAME,
    "two come": [  # with full batches, an epoch is one step
        *ALWAYS_SAME,
        {"FedCLGC", "FedCLGC, batch"},
        {"FedCLGS", "FedCLGS, batch", "FedCLGS, epochs"},
    ],
}


@pytest.mark.parametrize("situation", SAME)
def test_every_case_goes_its_own_way(situation: str) -> None:
    """Otherwise a case would check nothing that another doesn't."""
    paths = {}
    for name, case in CASES.items():
        crowd = replace(SITUATIONS[situation], cohorts=SITUATIONS[situation].crowds)
        paths[name] = models(case.method(posed(case, crowd), **case.arguments(crowd)))
    for left, right in combinations(paths, 2):
        same = any({left, right} <= group for group in SAME[situation])
        assert (apart(paths[left], paths[right]) < 1e-3) == same, (left, right)


def test_the_situations_meet_what_they_are_for() -> None:
    draws = [draw(t) for t in range(ROUNDS)]
    assert min(draws) < 0.4 < max(draws) > 0.8  # both kinds of SAFARI's rounds, for each q
    for name, s in SITUATIONS.items():  # clients whom FLTrust trusts and clients whom it doesn't
        p, trusts = posed(CASES["FLTrust"], s), []
        path = [p.start, *models(reference.fltrust(p, client=s.client, server=s.server))]
        for t, cohort in enumerate(p.cohorts):
            own = reference.descend(p, reference.SERVER, path[t], s.server, t).change
            ends = [reference.descend(p, i, path[t], s.client, t) for i in cohort]
            trusts += [reference.trust(end.change, own) for end in ends]
        assert min(trusts) == 0 < max(trusts), name


def test_the_gradient_is_the_slope_of_the_loss() -> None:
    p, h = reference.problem(), 1e-5
    for data in (*p.clients, p.held(reference.SERVER)):
        steps = h * np.eye(p.start.size)
        rise = [
            reference.loss(p.start + s, data) - reference.loss(p.start - s, data) for s in steps
        ]
        np.testing.assert_allclose(
            reference.gradient(p.start, data), np.array(rise) / (2 * h), atol=1e-9
        )


def central(p: Problem, *, client: Pass) -> Iterator[After]:
    """One client's data, no federation."""
    x = p.start
    for t, (only,) in enumerate(p.cohorts):
        x = reference.descend(p, only, x, client, t).end
        yield After(x)


BATCHED = Pass(0.1, epochs=2, batch_size=5, decay=0.9, weight_decay=0.1)
NOTHING = Pass(0.1, steps=0)
ONE = Pass(0.2, steps=1, decay=0.9)
WHOLE: Arguments = {"blocks": [slice(0, 15)], "shared": slice(0, 0), "momentum": 0.0}
C: Arguments = {"client": BATCHED}
S: Arguments = {"server": SERVER}
FULL: Arguments = {"client": CLIENT}
Named = tuple[Method, Arguments]
IDENTITIES: dict[str, tuple[Named, Named]] = {
    "FSL, weight 0, is FedAvg": (
        (reference.fsl, C | S | {"weight": 0.0, "global_lr": 0.7}),
        (reference.fedavg, C | {"global_lr": 0.7}),
    ),
    "FSL-p, weight 0, is FedAvg": (
        (FSLP, C | S | {"weight": 0.0, "global_lr": 0.7}),
        (reference.fedavg, C | {"global_lr": 0.7}),
    ),
    "FSL is CLG-SGD": (  # 4 steps of 0.2 at the clients, 3 at the server
        (reference.fsl, FULL | S | {"weight": 0.6, "global_lr": 0.7}),
        (
            reference.clg_sgd,
            FULL | {"server": Pass(0.6 * 4 * 0.7 * 0.2 / 3, steps=3, decay=0.9), "global_lr": 0.7},
        ),
    ),
    "CLG-SGD without server steps is FedAvg": (
        (reference.clg_sgd, C | {"server": NOTHING}),
        (reference.fedavg, C),
    ),
    "CLG-SGD of clients that stand still is the server alone": (
        (reference.clg_sgd, {"client": STILL} | S),
        (reference.server_only, S),
    ),
    "SAFARI, q 1, is FedAvg": ((reference.safari, C | S | {"q": 1.0}), (reference.fedavg, C)),
    "SAFARI, q 0, is the server alone": (
        (reference.safari, C | S | {"q": 0.0}),
        (reference.server_only, S),
    ),
    "SCAFFOLD+ without server steps is SCAFFOLD": (
        (reference.scaffold, C | {"server": NOTHING}),
        (reference.scaffold, C),
    ),
    "FedAvgM, momentum 0, is FedAvg": (
        (reference.fedavgm, C | {"momentum": 0.0}),
        (reference.fedavg, C),
    ),
    "FedCLG-C is FedCLG-S after one step": (
        (reference.fedclg_c, {"client": ONE} | S),
        (reference.fedclg_s, {"client": ONE} | S),
    ),
    "FedCLG-C of one step is a server step": (
        (reference.fedclg_c, {"client": ONE, "server": NOTHING, "global_lr": 0.7}),
        (reference.server_only, {"server": ONE._replace(lr=0.7 * 0.2)}),
    ),
    "FedBCGD of one block is FedAvg": (
        (reference.fedbcgd, C | WHOLE),
        (reference.fedavg, C),
    ),
    "FedBCGD+ of one block is SCAFFOLD I": (
        (reference.fedbcgd_plus, FULL | WHOLE),
        (reference.scaffold, FULL | {"option": 1}),
    ),
    "FedDC without the linear term is FedDyn": (
        (reference.feddc, C | {"alpha": 0.5, "linear": False}),
        (reference.feddyn, C | {"alpha": 0.5}),
    ),
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_references_agree_where_they_must(name: str) -> None:
    p = replace(reference.problem(), cohorts=SITUATIONS["one always, one once"].crowds)
    (left, mine), (right, other) = IDENTITIES[name]
    assert apart(models(left(p, **mine)), models(right(p, **other))) < 1e-13


def test_the_first_round_of_scaffold_is_fedavg() -> None:
    p = replace(reference.problem(), cohorts=[[4, 1], [1, 0]])
    ours, plain = models(reference.scaffold(p, **C)), models(reference.fedavg(p, **C))
    assert apart(ours[:1], plain[:1]) < 1e-14
    assert apart(ours[1:], plain[1:]) > 1e-3


def test_one_client_that_holds_everything_is_centralised() -> None:
    p = reference.problem()
    p = replace(p, clients=p.clients[2:3], cohorts=[[0]] * 4)
    everything: dict[Method, Arguments] = {
        reference.fedavg: C,
        reference.scaffold: C,
        reference.fedbcgd: C | WHOLE,
        reference.fedbcgd_plus: FULL | WHOLE,
    }
    for method, arguments in everything.items():
        expected = models(central(p, client=arguments["client"]))
        assert apart(models(method(p, **arguments)), expected) < 1e-13, method
    for method in (reference.feddyn, reference.feddc, reference.fedavgm, reference.fedadam):
        assert apart(models(method(p, **C)), models(central(p, **C))) > 1e-3, method


def test_the_momentum_of_fedbcgd_is_that_of_the_heavy_ball() -> None:
    """z_{r+1} - z_r = (mean - x_r) / (1 - b) with z_r = x_r + b / (1 - b) (x_r - x_{r-1})."""
    b, p = 0.6, replace(reference.problem(), cohorts=[[0, 3, 2], [1, 4, 5], [3, 2, 1]])
    path = [p.start, p.start, *models(reference.fedbcgd(p, **C | WHOLE | {"momentum": b}))]
    z = [x + b / (1 - b) * (x - before) for before, x in pairwise(path)]
    for t, cohort in enumerate(p.cohorts):
        change = reference.mean_change(p, path[t + 1], cohort, BATCHED, t)
        np.testing.assert_allclose(z[t + 1] - z[t], change / (1 - b), rtol=1e-12, atol=1e-14)


KEEPERS: dict[str, Named] = {
    "SCAFFOLD": (reference.scaffold, {}),
    "SCAFFOLD I": (reference.scaffold, {"option": 1}),
    "FedDyn": (reference.feddyn, {"alpha": 0.5}),
    "FedDC": (reference.feddc, {"alpha": 0.5}),
    "FedBCGD+": (reference.fedbcgd_plus, THREE | {"momentum": 0.3}),
}


@pytest.mark.parametrize("name", KEEPERS)
def test_the_server_keeps_the_mean_of_what_the_clients_keep(name: str) -> None:
    method, settings = KEEPERS[name]
    p = replace(reference.problem(), cohorts=SITUATIONS["one always, one once"].crowds)
    for after in method(p, **C, **settings):
        for whole, each in after.kept.values():
            assert np.linalg.norm(whole) > 1e-3
            np.testing.assert_allclose(whole, each.mean(axis=0), rtol=1e-12, atol=1e-14)


def optimum(p: Problem, weight_decay: float) -> Vector:
    """Where the clients' mean loss and weight_decay |x|^2 / 2 are least, by Newton's method."""
    x, h = 0 * p.start, 1e-6

    def slope(y: Vector) -> Vector:
        slopes = [reference.gradient(y, data) for data in p.clients]
        return np.asarray(np.mean(slopes, axis=0) + weight_decay * y)

    for _ in range(12):
        curvature = [(slope(x + s) - slope(x - s)) / (2 * h) for s in h * np.eye(x.size)]
        x = x - np.linalg.solve(np.array(curvature), slope(x))
    assert np.linalg.norm(slope(x)) < 1e-14
    return x


def distance(method: Method, settings: Arguments, rounds: int) -> float:
    """How far from the optimum it ends, with cohorts of four of six."""
    rng = np.random.default_rng(4)
    cohorts = [rng.choice(6, 4, replace=False).tolist() for _ in range(rounds)]
    p = replace(reference.problem(), cohorts=cohorts)
    end = models(method(p, client=Pass(0.2, steps=2, weight_decay=0.2), **settings))[-1]
    return float(np.linalg.norm(end - optimum(p, weight_decay=0.2)))


@pytest.mark.parametrize("name", KEEPERS)
def test_methods_that_keep_memories_reach_the_optimum(name: str) -> None:
    assert distance(*KEEPERS[name], rounds=450) < 1e-13


def test_methods_without_memories_do_not() -> None:
    for method, settings in (
        (reference.fedavg, {}),
        (reference.fedavgm, {"momentum": 0.3}),
        (reference.fedbcgd, THREE | {"momentum": 0.3}),
    ):
        assert distance(method, settings, rounds=100) > 1e-2
