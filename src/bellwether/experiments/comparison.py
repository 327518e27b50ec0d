"""Methods side by side: the same data, initial model, cohorts and mini-batches for each."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from bellwether.core.algorithm import Algorithm
from bellwether.core.interfaces import Engine, Participation
from bellwether.core.profile import Profile
from bellwether.core.records import RoundRecord
from bellwether.experiments.results import Comparison, Run, check_target
from bellwether.experiments.run_directory import keeping
from bellwether.experiments.training import Interrupted, check_method, train
from bellwether.federation import Federation

OnRound = Callable[[str, int, RoundRecord], None]
"""Told of every round: the method's name, the seed, the record."""


@dataclass(frozen=True)
class Plan:
    """What is to be compared on what."""

    title: str
    methods: Mapping[str, Algorithm[Any]]
    """By the names that are shown."""
    federation: Callable[[int], Federation]
    """Made from a seed: every seed has its own."""
    model: Callable[[], nn.Module]
    participation: Participation
    rounds: int
    seeds: Sequence[int]
    target: float | None = None
    class_names: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    """What a reader must know, in the order to show."""
    stop_on_divergence: bool = True
    engine: Engine | None = None
    """Where clients run; the results do not depend on it."""
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    """By the methods' names, where it is asked for: it is told where the time of all runs goes."""
    file: Callable[[str, int], str] | None = None
    """The complete experiment's file of a method and seed, which its folder keeps."""

    def __post_init__(self) -> None:
        check_target(self.target)


def compare(
    plan: Plan, on_round: OnRound | None = None, folder: Path | None = None, resume: bool = False
) -> Comparison:
    """Train every method from every seed; after Ctrl-C, what was done until then.

    With a folder each run writes itself down in `folder/<method>/seed-<n>`, and who holds what in
    `manifest-seed-<n>.json`; with `resume` those runs that are there go on.
    """
    first = plan.federation(plan.seeds[0])
    for method in plan.methods.values():  # the last one's mistake is said now, not after hours
        check_method(method, first, plan.participation, plan.seeds[0])
    runs = tuple(_runs(plan, first, on_round or (lambda *_: None), folder, resume))
    manifest = first.manifest
    return Comparison(
        title=plan.title,
        runs=runs,
        settings=plan.settings,
        target=plan.target,
        planned_rounds=plan.rounds,
        histogram=manifest.labels if manifest else None,
        server_histogram=manifest.drawn_labels if manifest and manifest.server else None,
        server_draws=manifest.drawn if manifest else None,
        class_names=tuple(plan.class_names),
        population=first.population,
    )


def _runs(
    plan: Plan, first: Federation, on_round: OnRound, folder: Path | None, resume: bool
) -> Iterator[Run]:
    for number, seed in enumerate(plan.seeds):
        federation = plan.federation(seed) if number else first
        for name, method in plan.methods.items():
            run_dir = folder and folder / name.lower().replace(" ", "-") / f"seed-{seed}"
            going_on = bool(resume and run_dir and run_dir.exists())
            kept: AbstractContextManager[None] = nullcontext()
            if plan.file and run_dir and not going_on:
                kept = keeping(plan.file(name, seed), run_dir)
            try:
                with kept:
                    result = train(
                        method,
                        federation,
                        plan.model,
                        plan.rounds,
                        participation=plan.participation,
                        seed=seed,
                        on_round=partial(on_round, name, seed),
                        run_dir=run_dir,
                        resume=going_on,
                        stop_on_divergence=plan.stop_on_divergence,
                        engine=plan.engine,
                        profile=plan.profiles.get(name),
                    )
            except Interrupted as interrupt:
                yield Run(name, seed, tuple(interrupt.result.history), complete=False)
                return
            yield Run(name, seed, tuple(result.history))
        if folder and federation.manifest:
            federation.manifest.save(folder / f"manifest-seed-{seed}.json")
