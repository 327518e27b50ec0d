"""Compression: what each compressor promises, with any method, resumed and in any order."""

import inspect
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from bellwether import (
    SGD,
    Algorithm,
    Client,
    Clients,
    Diverged,
    FedAvg,
    FedBCGD,
    FedCLGC,
    FedCLGS,
    InputError,
    Interrupted,
    Result,
    Sent,
    Server,
    State,
    Upload,
    WireError,
    engines,
    mean,
    participation,
    train,
)
from bellwether.algorithms import Scaffold
from bellwether.compression import Half, Quantise, RandomK, TopK
from bellwether.compression.half import Halves
from bellwether.compression.quantise import Levels
from bellwether.compression.random_k import Drawn
from bellwether.compression.top_k import Largest
from bellwether.core import compression, streams, wire
from bellwether.core.algorithm import EMPTY
from bellwether.core.tasks import Exchange, Outcome
from quadratics import half_squared_error, model, problem
from test_run_directory import same
from test_same_bits import CLIENT, SERVER, AnyOrder, batch_norm_network, federation

COMPRESSORS = [
    TopK(0.1), TopK(0.6), TopK(1.0), RandomK(0.3), RandomK(0.3, feedback=True), RandomK(1.0),
    Quantise(8), Quantise(4, bucket=3), Quantise(2), Half(),
]  # fmt: skip
SEVERAL = [TopK(0.1), RandomK(0.3), RandomK(0.3, feedback=True), Quantise(4), Half()]


def named(compressor: object) -> str:
    return str(compressor)


each = pytest.mark.parametrize("compressor", COMPRESSORS, ids=named)
several = pytest.mark.parametrize("compressor", SEVERAL, ids=named)
keys = st.integers(0, 2**63 - 1)
fractions = st.floats(1e-3, 1.0)


@st.composite
def vectors(
    draw: st.DrawFn, largest: float = 2.0**127, least: int = 0, longest: int = 40
) -> Tensor:
    """Any finite numbers of float32, and those with a huge dynamic range, in either precision."""
    numbers = st.floats(-largest, largest, width=32) | st.floats(-1, 1, width=32)
    values = draw(st.lists(numbers, min_size=least, max_size=longest))
    return torch.tensor(values, dtype=draw(st.sampled_from([torch.float32, torch.float64])))


def squared(x: Tensor) -> float:
    return float((x.double() ** 2).sum())


def kept(fraction: float, d: int) -> int:
    return max(1, round(fraction * d))


# --- what each compressor promises --------------------------------------------------------------


@each
@settings(deadline=None, max_examples=20)
@given(vectors(2.0**124), keys, st.booleans())
def test_any_vector_goes_through_and_the_wire_changes_no_bit(compressor, x, key, matrix):
    x = torch.stack([x, -x]) if matrix else x
    packed = compressor.compress(x, key)
    data = wire.encode(packed)
    assert wire.size(packed) == len(data)
    there, here = compressor.decompress(wire.decode(compressor.form, data)), x.clone()
    assert there.shape == x.shape
    assert there.dtype == x.dtype
    assert torch.equal(there, compressor.decompress(packed))
    assert there.isfinite().all()
    compressor.decompress(packed).fill_(7)  # the receiver's own
    assert torch.equal(x, here)
    assert torch.equal(compressor.decompress(packed), there)


@settings(deadline=None)
@given(vectors(least=1), fractions)
def test_top_k_contracts_as_proven_and_keeps_the_largest(x, fraction):
    compressor = TopK(fraction)
    y = compressor.decompress(compressor.compress(x, 0))
    k = kept(fraction, len(x))
    assert squared(y - x) <= (1 - k / len(x)) * squared(x) * (1 + 1e-12)
    sizes = x.abs().sort(descending=True).values
    assert torch.equal(y.abs().sort(descending=True).values[:k], sizes[:k])
    assert torch.equal(y[y != 0], x[y != 0])


@settings(deadline=None)
@given(vectors(), keys)
def test_everything_kept_is_the_vector_itself(x, key):
    for compressor in (TopK(1.0), RandomK(1.0)):
        y = compressor.decompress(compressor.compress(x, key))
        assert y.numpy().tobytes() == x.numpy().tobytes()
        assert not compressor.feedback


def test_random_k_draws_every_choice_equally_often() -> None:
    """Then E C(x) = x exactly, since each number is sent as x_i d/k; and its variance is known."""
    d, k, times = 6, 2, 3000
    x = torch.arange(1.0, d + 1, dtype=torch.float64)
    compressor = RandomK(k / d)
    counts = dict.fromkeys(combinations(range(d), k), 0)
    error = 0.0
    for key in range(times):
        y = compressor.decompress(compressor.compress(x, key))
        places = y.nonzero()[:, 0]
        assert torch.equal(y[places], x[places] * (d / k))
        counts[tuple(places.tolist())] += 1
        error += squared(y - x) / times
    p = 1 / len(counts)
    for count in counts.values():
        assert abs(count - times * p) < 4.5 * np.sqrt(times * p * (1 - p))
    assert error == pytest.approx((d / k - 1) * squared(x), rel=0.06)


def test_random_k_with_feedback_contracts_on_average() -> None:
    x = torch.linspace(-2, 3, 10, dtype=torch.float64)
    compressor = RandomK(0.3, feedback=True)
    errors = [squared(compressor.decompress(compressor.compress(x, k)) - x) for k in range(2000)]
    assert np.mean(errors) == pytest.approx(0.7 * squared(x), rel=0.02)


class Grid:
    """Instead of a stream: the same number for every draw."""

    def __init__(self, number: float) -> None:
        self.number = number

    def random(self, shape: tuple[int, ...], precision: type) -> np.ndarray:
        return np.full(shape, self.number, precision)


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_quantise_is_unbiased_exactly(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over all draws u in [0, 1), taken on a grid of n, the mean is x to half a cell."""
    n, bucket = 500, 4
    x = torch.tensor([0.3, -0.71, 1.0, 1e-3, 50.0, 0.0, -49.9, 1e-9, 0.2], dtype=torch.float64)
    compressor = Quantise(bits, bucket)
    total = torch.zeros_like(x)
    for i in range(n):
        monkeypatch.setattr(streams, "generator", lambda *_, u=(i + 0.5) / n: Grid(u))
        total += compressor.decompress(compressor.compress(x, 0)) / n
    scale = torch.tensor([1.0, 50.0, 0.2], dtype=torch.float64).repeat_interleave(bucket)[:9]
    step = scale / (2 ** (bits - 1) - 1)
    assert ((total - x).abs() <= step * (0.5 / n + 1e-9)).all()


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_quantise_is_unbiased_in_its_streams_and_varies_no_more_than_proven(bits: int) -> None:
    draw = np.random.default_rng(bits)
    x = torch.from_numpy(draw.normal(size=96))
    bucket, times, top = 32, 1500, 2 ** (bits - 1) - 1
    compressor = Quantise(bits, bucket)
    ys = torch.stack([compressor.decompress(compressor.compress(x, k)) for k in range(times)])
    deviation = ys.std(0) / np.sqrt(times) + 1e-12
    assert ((ys.mean(0) - x).abs() / deviation).max() < 4.5
    bound = min(bucket / (4 * top**2), np.sqrt(bucket) / top) * squared(x)
    assert bound / 100 < ((ys - x) ** 2).sum(1).mean() <= bound
    noise = torch.corrcoef((ys - x).T[(ys.std(0) > 0)])
    assert (noise - torch.eye(len(noise))).abs().max() < 0.15  # each number has its own draw


@settings(deadline=None, max_examples=50)
@given(vectors(least=1), keys, st.sampled_from([2, 4, 8]), st.integers(1, 50))
def test_quantise_moves_no_number_by_more_than_a_step(x, key, bits, bucket):
    compressor = Quantise(bits, bucket)
    y = compressor.decompress(compressor.compress(x, key))
    for mine, theirs in zip(x.split(bucket), y.split(bucket), strict=True):
        step = float(mine.abs().max()) / (2 ** (bits - 1) - 1)
        assert float((mine.double() - theirs.double()).abs().max()) <= step * (1 + 1e-5) + 1e-44


@settings(deadline=None)
@given(vectors(least=1))
@example(torch.tensor([1e-45, 0.0]))
@example(torch.tensor([5e-324, -1e-320], dtype=torch.float64))
@example(torch.tensor([-1.7e308, 1e-320], dtype=torch.float64))
def test_half_is_precise_and_never_overflows(x):
    y = Half().decompress(Half().compress(x, 0))
    assert y.isfinite().all()
    allowed = torch.maximum(x.abs().double() * 2**-11, x.abs().max().double() * 2**-39)
    assert ((y.double() - x.double()).abs() <= allowed * (1 + 1e-3) + 2e-45).all()


@each
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_arrives_so(compressor: Any, bad: float) -> None:
    for place in range(7):
        x = torch.linspace(-1, 1, 7)
        x[place] = bad
        assert not compressor.decompress(compressor.compress(x, 3)).isfinite().all()
    assert not compressor.decompress(compressor.compress(x[-1:], 3)).isfinite().any()
    if isinstance(compressor, Quantise | Half):  # the others are as they were
        torch.testing.assert_close(
            compressor.decompress(compressor.compress(x, 3))[0], torch.tensor(-1.0)
        )


@pytest.mark.parametrize(
    ("compressor", "share"),
    [
        (TopK(0.1), 0.1 + 1 / 32),  # a bit for each number says where
        (TopK(0.01), 0.02),  # a place for each value
        (RandomK(0.1), 0.1),
        (Quantise(8), 1 / 4),
        (Quantise(4), 1 / 8),
        (Quantise(2), 1 / 16),
        (Half(), 1 / 2),
    ],
    ids=named,
)
def test_bytes_shrink_as_claimed(compressor: Any, share: float) -> None:
    d = 100_000
    size = wire.size(compressor.compress(torch.randn(d), 1))
    scales = 4 * -(-d // 512) if isinstance(compressor, Quantise) else 0
    assert share * 4 * d <= size <= share * 4 * d + scales + 80


GOOD = torch.arange(1.0, 9)
FORGED = {
    "too few values": (TopK(0.5), Largest(GOOD[:3], torch.tensor([255], dtype=torch.uint8), (8,))),
    "a place beyond": (TopK(0.1), Largest(GOOD[:1], torch.tensor([8], dtype=torch.int32), (8,))),
    "a place before": (TopK(0.1), Largest(GOOD[:1], torch.tensor([-1], dtype=torch.int32), (8,))),
    "values that are places": (TopK(1.0), Largest(GOOD.int(), GOOD[:0].byte(), (8,))),
    "an absurd shape": (RandomK(0.1), Drawn(GOOD[:1], 3, (2**31 - 1, 2))),
    "a large shape": (RandomK(0.1), Drawn(GOOD[:1], 3, (2**30,))),
    "a negative shape": (RandomK(0.1), Drawn(GOOD[:1], 3, (-1, -8))),
    "no key": (RandomK(0.1), Drawn(GOOD[:1], None, (8,))),  # type: ignore[arg-type]
    "other bits": (Quantise(8), Quantise(4).compress(GOOD, 0)),
    "no scales": (Quantise(8), Levels(GOOD.byte(), GOOD[:0], (8,))),
    "full precision": (Half(), Halves(GOOD, torch.tensor(1.0))),
}


@pytest.mark.parametrize(("compressor", "packed"), FORGED.values(), ids=FORGED)
def test_what_no_such_compressor_sent_is_refused(compressor: Any, packed: Any) -> None:
    with pytest.raises(WireError, match="another compressor, or is corrupt"):
        compressor.decompress(packed)


# --- messages -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Several:
    """A message with vectors in tuples, and much that is none."""

    change: Tensor
    parts: tuple[Any, ...] = ()
    count: int = 0
    labels: Tensor = EMPTY
    number: Tensor = EMPTY
    note: str | None = None


@each
def test_a_message_keeps_its_form_and_what_is_no_vector(compressor: Any) -> None:
    x = torch.linspace(-3, 2, 12)
    labels, number = torch.arange(5), torch.tensor(0.123)
    message = Several(x, (x * 2, (x - 1, 7)), 3, labels, number, "a note")
    packed, left = compression.pack(compressor, message, {}, 12, 0, 4, 1, 5)
    data = wire.encode(packed)
    assert wire.size(packed) == len(data)
    back = compression.unpack(compressor, wire.decode(Several, data, compressor.form), 1)
    assert (back.count, back.note, back.parts[1][1]) == (3, "a note", 7)
    assert torch.equal(back.labels, labels)
    assert torch.equal(back.number, number)
    sent = [back.change, back.parts[0], back.parts[1][0]]
    assert len(left) == (3 if compressor.feedback else 0)
    for wanted, vector, rest in zip([x, x * 2, x - 1], sent, left.values(), strict=False):
        torch.testing.assert_close(vector + rest, wanted)
    if isinstance(compressor, RandomK) and compressor.fraction < 1:  # each has its own draws
        assert len({tuple((v != 0).tolist()) for v in sent}) > 1
    with pytest.raises(WireError, match="nobody expects"):
        wire.decode(Several, data)


@pytest.mark.parametrize("compressor", [TopK(0.1), TopK(0.5), RandomK(0.2, feedback=True)])
@settings(deadline=None, max_examples=40)
@given(st.lists(vectors(1024.0, 6, 6), min_size=1, max_size=12))
def test_error_feedback_loses_nothing(compressor, wanted):
    """All that was sent and what is still remembered add up to all that was to be sent."""
    memory: dict[str, Tensor] = {}
    sent = torch.zeros(6, dtype=torch.float64)
    for round, v in enumerate(wanted):
        packed, memory = compression.pack(compressor, Upload(v.double()), memory, 6, 0, round, 0, 2)
        sent += compression.unpack(compressor, packed, 0).change
    total = torch.stack([v.double() for v in wanted]).sum(0)
    (residual,) = memory.values()
    assert (sent + residual - total).abs().max() <= 1e-9 * len(wanted)


def test_what_clients_hold_follows_the_model() -> None:
    """Downwards with feedback: the server's idea of h is what clients see, and h -> x."""
    compressor, held = TopK(0.25), {}
    x = torch.randn(8, generator=torch.Generator().manual_seed(1))
    for round in range(6):
        message = Sent(x + (round > 0))  # one move by 1 everywhere after the first message
        packed, holds = compression.announce(compressor, message, held, 0, round, 0, -1)
        seen = compression.unpack(compressor, packed, 0, held).model
        held = holds
        assert torch.equal(seen, *held.values())
        behind = [0, 6, 4, 2, 0, 0][round]
        assert int(((seen - message.model).abs() > 0.5).sum()) == behind


# --- training -----------------------------------------------------------------------------------

QUADRATICS = problem(3)


def distance(**compressors: Any) -> float:
    """How far FedAvg ends from the optimum, of what it was at first."""
    result = train(
        FedAvg(SGD(lr=0.2, steps=1, decay=0.98)),
        QUADRATICS.federation,
        model(),
        150,
        loss=half_squared_error,
        eval_every=0,
        **compressors,
    )
    start = next(model().parameters()).detach().numpy()
    optimum = QUADRATICS.optimum
    return float(np.linalg.norm(result.model.numpy() - optimum) / np.linalg.norm(start - optimum))


class Forgetful(TopK):
    """The mutant: what was left out is lost."""

    feedback = False


def test_top_k_converges_because_it_remembers() -> None:
    assert distance(compress_up=TopK(0.1)) < 2e-2
    assert distance(compress_up=Forgetful(0.1)) > 0.2
    assert distance(compress_up=RandomK(0.2, feedback=True)) < 4e-2


@pytest.mark.parametrize(
    "compressors",
    [
        {"compress_up": Quantise(4), "compress_down": Quantise(8)},
        {"compress_up": TopK(0.4), "compress_down": TopK(0.4)},
    ],
    ids=str,
)
def test_both_ways_come_near_the_optimum(compressors: dict[str, Any]) -> None:
    assert distance(**compressors) < 0.02


@dataclass(frozen=True)
class Twice(Algorithm):
    """Two exchanges that overlap, with one kind of reply; the server reads them in either order."""

    client: SGD
    last_first: bool

    def round(self, state: State, clients: Clients, server: Server) -> State:
        both = [clients.run(local, Sent(state.model)) for local in (self.local, self.other)]
        order = (1, 0) if self.last_first else (0, 1)
        changes = {i: mean(both[i]).change for i in order}
        return State(state.model + changes[0] + changes[1])

    def local(self, client: Client, sent: Sent) -> Upload:
        return Upload(client.descend(sent.model, self.client).change)

    def other(self, client: Client, sent: Sent) -> Upload:
        return Upload(0.01 * client.gradient(sent.model))


def test_exchanges_of_a_round_share_no_memory() -> None:
    def bits(last_first: bool) -> Tensor:
        method = Twice(CLIENT, last_first)
        return train(method, federation(), batch_norm_network, 3, compress_up=TopK(0.1)).model

    assert torch.equal(bits(False), bits(True))


FULL = participation.Uniform(7)
METHODS: dict[str, Algorithm] = {
    "FedAvg": FedAvg(CLIENT),
    "FedCLGC": FedCLGC(CLIENT, SERVER),
    "FedCLGS": FedCLGS(CLIENT, SERVER),
    "Scaffold": Scaffold(CLIENT),
    "FedBCGD": FedBCGD(CLIENT, blocks=("0", "1"), shared="2"),
}


def run(
    method: str,
    rounds: int = 8,
    cohort: Any = participation.Uniform(4),  # noqa: B008
    **more: Any,
) -> Result:
    algorithm, network = METHODS[method], batch_norm_network
    return train(
        algorithm, federation(), network, rounds, participation=cohort, checkpoint_every=3, **more
    )


@pytest.mark.parametrize("method", METHODS)
def test_sending_all_is_no_compression(method: str) -> None:
    plain = run(method, 3)
    assert same(run(method, 3, compress_up=TopK(1.0), compress_down=TopK(1.0)), plain)
    small = run(method, 3, compress_up=Quantise(8), compress_down=Half())
    assert not torch.equal(small.model, plain.model)
    for less, record in zip(small.history, plain.history, strict=True):
        assert less.bytes_up < record.bytes_up
        assert less.bytes_down < record.bytes_down


def test_downwards_only_the_first_message_is_whole() -> None:
    plain = run("FedAvg", 3, FULL).history
    first, second, third = run("FedAvg", 3, FULL, compress_down=TopK(0.1)).history
    assert first.bytes_down == plain[0].bytes_down
    assert second.bytes_down == third.bytes_down < plain[0].bytes_down / 2


class Weighing(engines.Local):
    """Puts every message into bytes and back, and weighs them."""

    def __init__(self, form: type[Any]) -> None:
        self.form, self.down, self.up = form, 0, 0

    def run(self, exchange: Exchange) -> Iterator[Outcome]:
        buffers = wire.tensor_size(exchange.buffers)
        data = wire.encode(exchange.sent)
        object.__setattr__(exchange, "sent", wire.decode(type(exchange.sent), data, self.form))
        exchange.__post_init__()
        self.down += len(exchange.cohort) * (len(data) + buffers)
        for outcome in super().run(exchange):
            data = wire.encode(outcome.upload)
            self.up += len(data) + buffers
            upload = wire.decode(type(outcome.upload), data, self.form)
            object.__setattr__(outcome, "upload", upload)
            yield outcome


@several
def test_records_count_the_very_bytes_and_bytes_carry_all(compressor: Any) -> None:
    both = {"compress_up": compressor, "compress_down": compressor, "cohort": FULL}
    scale = Weighing(compressor.form)
    result = run("FedCLGS", 3, engine=scale, **both)
    assert scale.down == sum(record.bytes_down for record in result.history)
    assert scale.up == sum(record.bytes_up for record in result.history)
    assert same(result, run("FedCLGS", 3, **both))


@several
def test_in_any_order(compressor: Any) -> None:
    both = {"compress_up": compressor, "compress_down": compressor, "cohort": FULL}
    shuffled = AnyOrder(5)
    assert same(run("Scaffold", 4, engine=shuffled, **both), run("Scaffold", 4, **both))
    assert len(shuffled.orders) > 1


@several
def test_resumed_in_the_same_bits(compressor: Any, tmp_path: Path) -> None:
    both = {"compress_up": compressor, "compress_down": compressor, "cohort": FULL}
    folder = tmp_path / "run"
    run("Scaffold", 5, run_dir=folder, **both)
    assert same(run("Scaffold", run_dir=folder, resume=True, **both), run("Scaffold", **both))


class Halting(engines.Local):
    """Ctrl-C in the middle of a round: some replies were accepted, the round was not."""

    done = 0

    def run(self, exchange: Exchange) -> Iterator[Outcome]:
        for outcome in super().run(exchange):
            self.done += 1
            if self.done == 4 * 4 + 3:
                raise KeyboardInterrupt
            yield outcome


def test_residuals_of_a_round_that_was_not_finished_are_not_kept(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    up = {"compress_up": TopK(0.1)}
    with pytest.raises(Interrupted, match="after round 4"):
        run("Scaffold", run_dir=folder, engine=Halting(), **up)
    assert same(run("Scaffold", run_dir=folder, resume=True, **up), run("Scaffold", **up))


def test_killed_for_real(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    code = (
        "import sys, time; from pathlib import Path; sys.path.insert(0, sys.argv[1]);"
        "from test_compression import *;"
        "run('Scaffold', compress_up=TopK(0.1), run_dir=Path(sys.argv[2]),"
        "on_round=lambda r: (print(r.round, flush=True), time.sleep(0.02)))"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parent), str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    lines = [process.stdout.readline() for _ in range(5)]
    assert all(lines)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()
    up = {"compress_up": TopK(0.1)}
    assert same(run("Scaffold", run_dir=folder, resume=True, **up), run("Scaffold", **up))
    with pytest.raises(InputError, match=r"made with compress_up = TopK\(fraction=0.1\), not None"):
        run("Scaffold", run_dir=folder, resume=True)


def test_clients_and_rounds_have_their_own_draws() -> None:
    up = RandomK(0.3)
    draws = [
        compression.pack(up, Upload(torch.ones(40)), {}, 40, *name)[0].change.key
        for name in [(0, 1, 0, 0), (1, 1, 0, 0), (0, 2, 0, 0), (0, 1, 1, 0), (0, 1, 0, 1)]
    ]
    assert len(set(draws)) == len(draws)


@several
def test_divergence_is_still_noticed(compressor: Any) -> None:
    explosive = FedAvg(SGD(lr=1e20, epochs=3))
    with pytest.raises(Diverged, match=r"client \d: change is not finite"):
        train(explosive, federation(), batch_norm_network, 30, compress_up=compressor)


# --- mistakes -----------------------------------------------------------------------------------

MISTAKES = {
    "fraction 0": (lambda: TopK(0), r"TopK\(fraction=0\): give a number above 0 and at most 1"),
    "fraction above 1": (lambda: RandomK(1.5), r"RandomK\(fraction=1.5\)"),
    "fraction NaN": (lambda: TopK(np.nan), r"TopK\(fraction=nan\)"),
    "fraction complex": (lambda: TopK(0.1j), r"TopK\(fraction=0.1j\)"),
    "fraction True": (lambda: RandomK(True), r"RandomK\(fraction=True\)"),
    "fraction text": (lambda: TopK("0.1"), r"TopK\(fraction='0.1'\)"),
    "feedback 1": (lambda: RandomK(0.1, 1), "give True or False"),
    "3 bits": (lambda: Quantise(3), r"Quantise\(bits=3\): give 2, 4 or 8"),
    "8.0 bits": (lambda: Quantise(8.0), r"Quantise\(bits=8.0\)"),
    "bits None": (lambda: Quantise(None), r"Quantise\(bits=None\)"),
    "bucket 0": (lambda: Quantise(bucket=0), r"Quantise\(bucket=0\)"),
    "a class": (lambda: run("FedAvg", compress_up=Half), "compress_up .* not the class Half"),
    "a number": (lambda: run("FedAvg", compress_down=8), "compress_down .* not 8"),
    "whole numbers": (lambda: Half().compress(torch.arange(3), 0), "not int64"),
    "top-k of blocks": (
        lambda: run("FedBCGD", compress_up=TopK(0.1)),
        r"leaves out of Upload.change .* shape \(\d+,\) beside a model of \d+ numbers",
    ),
    "top-k downwards to some": (
        lambda: run("FedAvg", compress_down=TopK(0.1)),
        r"compress_down=TopK\(fraction=0.1\) sends differences.*4 of 7",
    ),
    **{
        f"complex vectors, {type(c).__name__}": (
            lambda c=c: compression.pack(c, Upload(torch.ones(3) * 1j), {}, 3, 0, 1, 0, 0),
            "real floating numbers, not complex64",
        )
        for c in (TopK(0.1), RandomK(0.1), Quantise(), Half())
    },
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_clear_line(name: str) -> None:
    make, message = MISTAKES[name]
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_the_same_compressors_for_every_method_and_none_by_default() -> None:
    parameters = inspect.signature(train).parameters
    assert parameters["compress_up"].default is parameters["compress_down"].default is None
