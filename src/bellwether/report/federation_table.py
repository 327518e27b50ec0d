"""A federation as a table for the terminal."""

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bellwether.federation.groups import Indices
from bellwether.federation.manifest import spread
from bellwether.report.overview import Overview
from bellwether.report.words import ABSENT


def federation_table(overview: Overview) -> RenderableType:
    """Facts, then the labels of the clients together beside the server's; fits 80 columns."""
    return Group(_facts(overview), *_labels(overview), *_notes(overview))


def _facts(overview: Overview) -> Table:
    manifest = overview.manifest
    facts = {
        "data": manifest.dataset,
        "clients": f"{overview.population:,}, {manifest.partition}, seed {manifest.seed}",
        "samples a client": spread(manifest.sizes),
        "labels a client": spread(overview.labels_each) if manifest.labels.size else ABSENT,
        "server": manifest.server_line,
        "who comes": str(overview.participation),
        "": overview.coming,
        "held by nobody": f"{len(manifest.left):,} samples",
    }
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(Text(name), Text(value))
    return table


def _labels(overview: Overview) -> list[Table]:
    manifest = overview.manifest
    if not manifest.labels.size:
        return []
    columns = [("clients' samples", manifest.population_labels)]
    if manifest.server is not None:
        columns.append(("server's", manifest.drawn_labels))
    holders = (manifest.labels > 0).sum(axis=0)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("label", overflow="fold")
    table.add_column("clients with it", justify="right")
    for name, _ in columns:
        table.add_column(name, justify="right")
        table.add_column("share", justify="right")
    for label, held_by in enumerate(holders):
        name = overview.class_names[label] if label < len(overview.class_names) else str(label)
        shares = [text for _, counts in columns for text in _shares(counts, label)]
        table.add_row(Text(name), f"{held_by:,}", *shares)
    return [table]


def _notes(overview: Overview) -> list[Text]:
    return [Text(f"note: {note}", "yellow") for note in overview.manifest.notes]


def _shares(counts: Indices, label: int) -> tuple[str, str]:
    total = int(counts.sum())
    share = f"{100 * counts[label] / total:.1f} %" if total else ABSENT
    return f"{counts[label]:,}", share
