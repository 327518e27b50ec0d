"""Where the time of a round goes, as a table for the terminal."""

from collections.abc import Mapping

from rich import box
from rich.table import Table
from rich.text import Text

from bellwether.core.profile import PARTS, WAITING, Profile


def profile_table(name: str, profile: Profile) -> Table:
    """A row for each part that took any time, here and in workers; fits 80 columns."""
    title = f"{name}: where a round's time went (mean of {profile.rounds})"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=Text(title), title_justify="left")
    table.add_column("part", no_wrap=True)
    table.add_column("seconds", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("what it is", style="dim")
    _add(table, profile.nanoseconds, profile.rounds, "a round", "")
    if working := sum(profile.in_workers.values()):
        overlap = working / (profile.nanoseconds[WAITING] or 1)
        note = f"{overlap:.2f} times what was waited for them"
        _add(table, profile.in_workers, profile.rounds, "all workers", note)
    return table


def _add(table: Table, spent: Mapping[str, int], rounds: int, name: str, note: str) -> None:
    """The parts and their sum, a round."""
    total, rounds = sum(spent.values()), max(rounds, 1)
    for part, meaning in [*PARTS.items(), (name, note)]:
        nanoseconds = total if part == name else spent.get(part, 0)
        if part == name:
            table.add_section()
        if nanoseconds:
            share = f"{nanoseconds / total:.1%}"
            table.add_row(part, f"{nanoseconds / rounds / 1e9:.5f}", share, Text(meaning))
    table.add_section()
