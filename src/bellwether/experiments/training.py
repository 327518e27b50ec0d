"""`train`: one method on one federation, from the first round to the last."""

import dataclasses
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any, get_args

import torch
from torch import nn

from bellwether.core import rounds as core
from bellwether.core import streams
from bellwether.core.algorithm import Algorithm, check_cohort, check_settings
from bellwether.core.dataset import Samples
from bellwether.core.errors import InputError
from bellwether.core.evaluation import check_fit, check_labels
from bellwether.core.interfaces import Compressor, Engine, Participation
from bellwether.core.isolation import isolated
from bellwether.core.profile import Profile
from bellwether.core.records import RoundRecord
from bellwether.core.store import BUDGET, Store
from bellwether.core.tasks import Workplace
from bellwether.core.workspace import Loss, Regularised, default_loss
from bellwether.engines.local import Local
from bellwether.experiments import diagnostics, profiling
from bellwether.experiments.fingerprint import fingerprint
from bellwether.experiments.run import Result, Run
from bellwether.experiments.run_directory import RunDirectory
from bellwether.federation import Federation
from bellwether.federation.checks import whole
from bellwether.federation.participation import Uniform

DEFAULT_COHORT = 10


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during training; `result` holds what was done until then."""

    def __init__(self, result: Result) -> None:
        super().__init__(f"interrupted after round {len(result.history)}")
        self.result = result


def train(
    algorithm: Algorithm[Any],
    federation: Federation,
    model: nn.Module | Callable[[], nn.Module],
    rounds: int,
    *,
    participation: Participation | None = None,
    seed: int = 0,
    engine: Engine | None = None,
    loss: Loss | Regularised | None = None,
    compress_up: Compressor | None = None,
    compress_down: Compressor | None = None,
    statistics: core.Statistics = "average",
    eval_every: int = 1,
    overlap_evaluation: bool = False,
    diagnose_every: int = 0,
    diagnose_clients: int | None = None,
    on_round: Callable[[RoundRecord], None] | None = None,
    run_dir: Path | str | None = None,
    resume: bool = False,
    checkpoint_every: int = 10,
    memory_budget: int = BUDGET,
    device: str | torch.device = "auto",
    stop_on_divergence: bool = True,
    profile: Profile | None = None,
) -> Result:
    """Train a model by a method on a federation.

    model: a module (left as it is), or a function that makes one (its weights follow the seed).
    participation: who comes; by default 10 clients a round, uniformly, or all if there are fewer.
    loss: (outputs, targets) -> mean loss, by default cross-entropy for labels, else squared error;
        with an L2 term it is models.losses.Regularised(loss, l2).
    compress_up, compress_down: how vectors travel, such as compression.Quantise(); None: as is.
    statistics: of batch-norm; the clients' mean, or only the "server"'s, or "local" to each.
    eval_every: evaluate on the test samples each so many rounds and after the last; 0 never.
    overlap_evaluation: evaluate in the workers while the next round goes on. The whole is sooner
        done, but each record comes a round later, and its `seconds` count both.
    diagnose_every: measure in the first round and each so many what theory speaks of, such as the
        clients' dissimilarity (`experiments.diagnostics`); a pass over all clients' data, or over
        those of `diagnose_clients` that are drawn for it. No bit of the training depends on it.
    on_round: called with each `RoundRecord`.
    run_dir: a folder for metrics and checkpoints; with `resume` its run goes on.
    memory_budget: bytes of RAM for what clients keep between rounds; what is beyond lies in a
        file in run_dir, or in the folder for temporary files.
    profile: a `Profile()`, which then says where the rounds' time went.
    """
    rounds, seed = whole(rounds, "rounds"), whole(seed, "seed")
    eval_every = whole(eval_every, "eval_every")
    schedule = diagnostics.Schedule(
        whole(diagnose_every, "diagnose_every"),
        None if diagnose_clients is None else whole(diagnose_clients, "diagnose_clients", 1),
    )
    checkpoint_every = whole(checkpoint_every, "checkpoint_every", 1)
    memory_budget = whole(memory_budget, "memory_budget")
    _check_part("federation", federation, "client", "federate(dataset, clients=10)")
    _check_part("participation", participation, "cohort", "participation.Uniform(10)")
    _check_part("engine", engine, "run", "engines.Local()")
    _check_part("profile", profile, "nanoseconds", "Profile()")
    participation = participation or Uniform(min(DEFAULT_COHORT, federation.population))
    check_method(algorithm, federation, participation, seed)
    schedule.check(federation)
    _check_compressors(compress_up=compress_up, compress_down=compress_down)
    if resume and run_dir is None:
        raise InputError("resume=True needs run_dir, the folder of the run to go on with")
    data = None if run_dir is None else fingerprint(federation)
    with isolated(), ExitStack() as held:
        template = _module(model, seed)
        sample = _some_samples(federation)
        objective = loss or default_loss(sample)
        workplace = Workplace(template, objective, federation, seed, _device(device))
        space = workplace.workspace()
        outputs = check_fit(space, sample, federation.classes if loss is None else None)
        if loss is None and federation.classes is None:  # as of lazy clients
            workplace = dataclasses.replace(workplace, classes=outputs)
            if federation.has_server_data:
                check_labels(federation.server(1), outputs, "the server")
        if space.device.type != "cpu":
            federation = federation.on(space.device, space.dtype)
            workplace = dataclasses.replace(workplace, federation=federation)
        method = algorithm.laid_out(space.layers)
        workplace = dataclasses.replace(workplace, algorithm=method)
        setting = core.Setting(
            method,
            federation,
            participation,
            engine or Local(),
            space,
            seed,
            stop_on_divergence,
            compress_up,
            compress_down,
            statistics,
            Store(memory_budget, None if run_dir is None else Path(run_dir)),
        )
        _check_statistics(setting, tested=bool(eval_every) and federation.test is not None)
        if profile:
            setting = profiling.timed(setting, profile)
        run = Run(setting, workplace, schedule, core.begin(setting), overlap_evaluation)
        setting.engine.start(workplace)
        try:
            if run_dir is not None:
                directory = RunDirectory(run_dir, _identity(setting, algorithm), data)
                run.write_to(held.enter_context(directory), resume)
            if profile:
                run.watch(profile)
            for number in range(run.progress.round + 1, rounds + 1):
                last = number == rounds
                with profile.round() if profile else nullcontext():
                    run.step(bool(eval_every) and (number % eval_every == 0 or last))
                    if last or number % checkpoint_every == 0:
                        run.save()
                    for record in run.news():
                        if on_round:
                            on_round(record)
        except KeyboardInterrupt as interrupt:
            run.settle()
            raise Interrupted(run.result()) from interrupt
        finally:
            try:
                run.settle()
            finally:
                setting.engine.stop()
                run.close(rounds)
        return run.finish()


def _module(model: nn.Module | Callable[[], nn.Module], seed: int) -> nn.Module:
    if not isinstance(model, nn.Module) and callable(model):
        streams.seed_torch(seed, "model")
        model = model()
    if not isinstance(model, nn.Module):
        raise InputError(f"model must be, or make, a torch.nn.Module, not {type(model).__name__}")
    return model


def _some_samples(federation: Federation) -> Samples:
    return federation.test if federation.test is not None else federation.client(0)


def _device(device: str | torch.device) -> torch.device:
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"device {str(device)!r} cannot be used here: {reason}") from error


def check_method(
    algorithm: Algorithm[Any], federation: Federation, participation: Participation, seed: int
) -> None:
    """Raise `InputError` for what is no method, or one that these clients cannot serve."""
    if not isinstance(algorithm, Algorithm):
        given = getattr(algorithm, "__name__", type(algorithm).__name__)
        raise InputError(f"algorithm must be a method such as FedAvg(SGD(...)), not {given}")
    check_settings(algorithm)
    if algorithm.needs_server_data and not federation.has_server_data:
        raise InputError(
            f"{type(algorithm).__name__} needs data at the server and the federation has none;"
            " give federate(..., server=server_data.Sample(samples=100)) or"
            " Federation.from_arrays(..., server=(X, y))"
        )
    participation.check(federation.population)
    if algorithm.smallest_cohort:
        check_cohort(algorithm, len(participation.cohort(federation.population, seed, 1, 0)))


def _check_part(name: str, value: Any, ability: str, example: str) -> None:
    if value is not None and (isinstance(value, type) or not hasattr(value, ability)):
        given = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
        raise InputError(f"{name} must be such as {example}, not {given}")


def _check_compressors(**compressors: Any) -> None:
    for name, value in compressors.items():
        if value is None or (isinstance(value, Compressor) and not isinstance(value, type)):
            continue
        given = f"the class {value.__name__}" if isinstance(value, type) else repr(value)
        raise InputError(
            f"{name} must be a compressor such as compression.Quantise(bits=8), not {given}"
        )


def _check_statistics(setting: core.Setting, tested: bool) -> None:
    kind = setting.statistics
    if kind not in get_args(core.Statistics):
        wanted = " or ".join(map(repr, get_args(core.Statistics)))
        raise InputError(f"statistics={kind!r}: must be {wanted}")
    server_learns = setting.algorithm.needs_server_data or not setting.space.buffers.numel()
    if not server_learns and (kind == "server" or (kind == "local" and tested)):
        way_out = "" if kind == "server" else ", or eval_every=0 and result.module(client=...)"
        raise InputError(
            f"statistics={kind!r}: the server of {type(setting.algorithm).__name__} does not train,"
            " so the model has no batch-norm statistics to be tested with; use a method whose"
            f" server does, statistics='average'{way_out}"
        )


def _identity(setting: core.Setting, algorithm: Algorithm[Any]) -> dict[str, Any]:
    """What must be the same for a run to go on in the same bits."""
    up, down = setting.compress_up, setting.compress_down
    return {
        "algorithm": repr(algorithm),
        "participation": repr(setting.participation),
        "population": setting.federation.population,
        "parameters": setting.space.size,
        "dtype": str(setting.space.dtype),
        "seed": setting.seed,
        "compress_up": up and repr(up),
        "compress_down": down and repr(down),
        "statistics": setting.statistics,
    }
