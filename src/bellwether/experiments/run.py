"""A training run on its way, from round to round, and what it leaves."""

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from torch import nn

from bellwether.core import rounds as core
from bellwether.core.compression import Kept
from bellwether.core.errors import InputError, WorkerLost
from bellwether.core.evaluation import Evaluation, evaluate, metrics
from bellwether.core.interfaces import Evaluator
from bellwether.core.profile import DIAGNOSTICS, DISK, EVALUATION, Profile
from bellwether.core.records import RoundRecord
from bellwether.core.tasks import STATISTICS, Exchange, Workplace
from bellwether.core.vector import FlatModule, Vector
from bellwether.engines.parcels import Unfit
from bellwether.experiments import diagnostics
from bellwether.experiments.run_directory import RunDirectory

Metrics = Callable[[], dict[str, float]]
"""An evaluation under way: call it for what it finds."""


@dataclass(frozen=True)
class Result:
    """What training leaves: the model's vector, and a record of every round.

    The records are those that `on_round` saw, without their models but for the last.
    """

    model: Vector
    history: list[RoundRecord]
    buffers: Vector = field(repr=False)
    _template: nn.Module = field(repr=False)
    _kept: Mapping[int, Kept] = field(default_factory=dict, repr=False)

    def module(self, client: int | None = None) -> nn.Module:
        """The trained network; with a client's own batch-norm statistics if they stayed local."""
        buffers: Vector | None = self.buffers
        if client is not None:
            buffers = (self._kept.get(client) or {}).get(STATISTICS)
        if buffers is None:
            raise InputError(
                f"client {client} has no batch-norm statistics of its own: it never took part, or"
                " the training was without statistics='local'"
            )
        flat = FlatModule(self._template, self.model.device)
        flat.load(self.model, buffers)
        return copy.deepcopy(flat.module).eval()


class Run:
    """A training run on its way: its progress, its history and, if wanted, its folder."""

    def __init__(
        self,
        setting: core.Setting,
        workplace: Workplace,
        schedule: diagnostics.Schedule,
        progress: core.Progress,
        overlaps: bool,
    ) -> None:
        self.progress = progress
        self._overlaps = overlaps
        self._open: tuple[RoundRecord, Metrics] | None = None
        """The last round, while it is still evaluated."""
        self._news: list[RoundRecord] = []
        self._setting = setting
        self._workplace = workplace
        self._schedule = schedule
        self._history: list[RoundRecord] = []
        self._directory: RunDirectory | None = None
        self._saved = -1

    def write_to(self, directory: RunDirectory, resume: bool) -> None:
        if resume:
            memory = self._setting.algorithm.memory
            self.progress = directory.load(self.progress, memory) or self.progress
            self._history = directory.records()
        else:
            directory.create()
        self._saved = self.progress.round
        self._directory = directory

    def watch(self, profile: Profile) -> None:
        """Time what comes beside the rounds themselves."""
        profile.attend(
            self, whole=True, evaluate=EVALUATION, _found=EVALUATION, diagnose=DIAGNOSTICS
        )
        if self._directory:
            profile.attend(self._directory, whole=True, add=DISK, save=DISK)

    def step(self, evaluated: bool) -> None:
        """One round; the one before is settled after it, where evaluations overlap."""
        before, engine = self.progress, diagnostics.Overheard(self._setting.engine)
        due = self._schedule.due(before.round + 1)
        setting = dataclasses.replace(self._setting, engine=engine) if due else self._setting
        progress, record = core.play(setting, before)
        self.settle()
        if due:
            record = dataclasses.replace(record, metrics=self.diagnose(before, engine.exchanges))
        self.progress = progress
        self._open = record, self.evaluate(progress) if evaluated else dict
        if not self._overlaps:
            self.settle()

    def settle(self) -> None:
        """Write the last round down, once it is evaluated."""
        if self._open is None:
            return
        record, evaluated = self._open
        record = dataclasses.replace(record, metrics=self._found(evaluated) | record.metrics)
        self._open = None  # only now: Ctrl-C may have come while the evaluation was waited for
        if self._directory:
            try:
                self._directory.add(record)
            except InputError:  # the disk is full: no checkpoint may be ahead of the metrics
                self._open = record, evaluated
                raise
        if self._history:  # keeping every model would cost rounds x d
            self._history[-1] = dataclasses.replace(self._history[-1], model=None)
        self._history.append(record)
        self._news.append(record)

    def news(self) -> Iterator[RoundRecord]:
        """The rounds that were settled since the last call."""
        while self._news:
            yield self._news.pop(0)

    def evaluate(self, progress: core.Progress) -> Metrics:
        """Start to evaluate, if that can be done elsewhere; the answer gives the metrics."""
        engine, space = self._setting.engine, self._setting.space
        test = self._setting.federation.test
        if test is None:
            return dict
        evaluation = Evaluation(progress.state.model, progress.buffers)
        elsewhere = engine.scores(evaluation) if isinstance(engine, Evaluator) else None
        if elsewhere is None:
            return lambda: evaluate(space, test, evaluation.model, evaluation.buffers)

        coming = iter([elsewhere])

        def there() -> dict[str, float]:
            for scores in coming:
                with suppress(WorkerLost, Unfit):
                    return metrics(space, test, evaluation, scores())
            # What the workers could not do, or was interrupted, is done here.
            return evaluate(space, test, evaluation.model, evaluation.buffers)

        return there

    def _found(self, evaluated: Metrics) -> dict[str, float]:
        return evaluated()

    def diagnose(self, before: core.Progress, exchanges: list[Exchange]) -> dict[str, float]:
        return diagnostics.diagnose(
            self._setting, self._workplace, before, exchanges, self._schedule
        )

    def save(self) -> None:
        """Write a checkpoint, of a round that is settled."""
        self.settle()
        if self._directory and self._saved != self.progress.round:
            self._directory.save(self.progress)
            self._saved = self.progress.round

    def close(self, wanted: int) -> None:
        """Keep what is done; where nothing is, leave no folder behind."""
        self.save()
        if self._directory and wanted and not self.progress.round:
            self._directory.forget()

    def result(self) -> Result:
        model, buffers = self.progress.state.model, self.progress.buffers
        kept = self.progress.residuals if self._setting.statistics == "local" else {}
        return Result(model, self._history, buffers, self._workplace.module, kept)

    def finish(self) -> Result:
        if self._directory:
            self._directory.finish(self.progress.state.model, self.progress.buffers)
        return self.result()
