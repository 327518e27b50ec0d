"""What every command that trains shows in the end, and the engine that it was asked for."""

from pathlib import Path
from typing import Any

from bellwether.cli.console import EngineName, out
from bellwether.core.errors import InputError
from bellwether.engines import Local, Ray
from bellwether.experiments.results import Comparison
from bellwether.experiments.summary import summarise
from bellwether.report.page import write_page
from bellwether.report.table import comparison_table


def chosen_engine(
    workers: str, where: EngineName = EngineName.LOCAL, address: str | None = None
) -> Local | Ray:
    """The engine that --workers, --engine and --ray-address name."""
    number: Any = int(workers) if workers.isdecimal() else workers
    if where is EngineName.RAY:
        return Ray(address, workers=number)
    if address is not None:
        raise InputError("--ray-address is for --engine ray")
    return Local(number)


def show(comparison: Comparison, page: Path) -> None:
    """The table, and where the page is."""
    write_page(comparison, page)
    out.print(comparison_table(summarise(comparison)))
    out.print(f"The curves: {page.resolve()}", soft_wrap=True, highlight=False, markup=False)
