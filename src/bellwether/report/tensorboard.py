"""Runs in TensorBoard (extra `tensorboard`): one folder of event files each."""

from pathlib import Path

from bellwether.core.errors import InputError
from bellwether.core.records import RoundRecord
from bellwether.experiments.results import Run
from bellwether.report.trackers import scalars


class TensorBoard:
    """`train(..., on_round=TensorBoard("runs/board/mine"))`; the x axis is the round."""

    def __init__(self, folder: Path | str) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise InputError(
                "TensorBoard is not installed; run: pip install 'bellwether-fl[tensorboard]'"
            ) from None
        try:
            self._writer = SummaryWriter(str(folder))
        except OSError as error:
            raise InputError(f"cannot write {folder}: {error.strerror}") from error

    def __call__(self, record: RoundRecord) -> None:
        """Take in a round."""
        for name, value in scalars(record).items():
            self._writer.add_scalar(name, value, record.round)

    def close(self) -> None:
        """Write what is not written yet."""
        self._writer.close()


def board(folder: Path, run: Run) -> TensorBoard:
    """Where a run of a comparison goes: `<method>/seed-<n>`; an old export is an error."""
    place = folder / run.algorithm.lower().replace(" ", "-").replace("/", "-") / f"seed-{run.seed}"
    if place.exists():
        raise InputError(f"{place} is there already; remove it or give another --tensorboard")
    return TensorBoard(place)
