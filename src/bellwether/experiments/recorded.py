"""What runs wrote down, read back: one comparison from the folders of many runs."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bellwether.algorithms import CATALOGUE, find
from bellwether.core.errors import InputError
from bellwether.data.catalogue import CATALOGUE as DATA
from bellwether.experiments.results import Comparison, Run
from bellwether.experiments.run_directory import read_records
from bellwether.federation import Manifest

SEED = re.compile(r"seed-\d+")
SHOWN = ("participation", "population", "parameters", "compress_up", "compress_down")
"""What of a run's identity a reader of the comparison must know, beside the methods."""


@dataclass(frozen=True)
class Recorded:
    """The folder of one run."""

    path: Path
    root: Path
    """The folder in which it was looked for."""
    name: str
    """The method's, as it is shown."""
    identity: Mapping[str, Any]
    """What ran, as environment.json says."""
    versions: Mapping[str, str]

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return int(self.identity["seed"])

    @property
    def finished(self) -> bool:
        """Whether the run came to its end: the final model is written last."""
        return (self.path / "model.safetensors").exists()

    @property
    def setting(self) -> str:
        """All that runs of one method have in common."""
        return json.dumps({**self.identity, "seed": None}, sort_keys=True)

    @property
    def family(self) -> str:
        """The folder that was given; where that is one seed's, the one above it."""
        return (self.root.parent if SEED.fullmatch(self.root.name) else self.root).name


def find_runs(folders: Sequence[Path]) -> tuple[Recorded, ...]:
    """The runs in these folders, methods in the order of the catalogue, then seeds."""
    found = {run.path.resolve(): run for folder in folders for run in _runs_in(folder)}
    runs = _told_apart(tuple(found.values()))
    known = list(CATALOGUE)

    def place(run: Recorded) -> tuple[int, str, int]:
        return (known.index(run.name) if run.name in known else len(known), run.name, run.seed)

    return tuple(sorted(runs, key=place))


def read_comparison(folders: Sequence[Path], target: float | None = None) -> Comparison:
    """The runs of these folders side by side."""
    found = find_runs(folders)
    runs = tuple(Run(run.name, run.seed, _records(run), run.finished) for run in found)
    manifest = next(filter(None, map(_manifest, found)), None)
    names = list(dict.fromkeys(run.name for run in found))
    methods = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    entry = DATA.get(manifest.dataset) if manifest else None
    labels = manifest.labels if manifest and manifest.labels.size else None
    return Comparison(
        title=f"{methods} on {manifest.dataset}" if manifest else methods,
        runs=runs,
        settings=_settings(found, manifest),
        target=target,
        planned_rounds=max(1, *(run.rounds for run in runs)),
        histogram=labels,
        server_histogram=(
            manifest.drawn_labels if manifest and manifest.server and labels is not None else None
        ),
        server_draws=manifest.drawn if manifest else None,
        class_names=tuple(entry.classes) if entry and labels is not None else (),
        population=max(int(run.identity["population"]) for run in found),
        configurations=_configurations(found),
        notes=tuple(_unlike(found)),
    )


def _runs_in(folder: Path) -> Iterator[Recorded]:
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder; give the folder of a run, or of several runs")
    places = sorted(path.parent for path in folder.rglob("environment.json"))
    if not places:
        raise InputError(f"{folder} holds no run; `bellwether run --out` makes such a folder")
    for place in places:
        try:
            document = json.loads((place / "environment.json").read_text(encoding="utf-8"))
            identity, versions = document["run"], document.get("versions", {})
            int(identity["seed"]), int(identity["population"]), str(identity["algorithm"])
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(
                f"{place}/environment.json is not what this version writes;"
                " leave out or remove this run"
            ) from None
        yield Recorded(place, folder, _name(place, folder, identity), identity, versions)


def _name(place: Path, root: Path, identity: Mapping[str, Any]) -> str:
    """By the folders between, as `run --out` names them; a run given alone, by its class."""
    parts = [part for part in place.relative_to(root).parts if not SEED.fullmatch(part)]
    if parts:
        *outer, last = parts
        return " / ".join([*outer, _shown(last)])
    of_class = str(identity["algorithm"]).partition("(")[0]
    classes = {method.__name__: name for name, method in CATALOGUE.items()}
    return classes.get(of_class, of_class)


def _shown(folder: str) -> str:
    try:
        return find(folder)
    except InputError:
        return folder


def _told_apart(runs: Sequence[Recorded]) -> tuple[Recorded, ...]:
    """Runs with different settings, or of one seed, are never averaged under one name."""
    told: list[Recorded] = []
    for group in _groups(runs):
        seeds = {run.seed for run in group}
        if len({run.setting for run in group}) > 1 or len(seeds) < len(group):
            group = [replace(run, name=f"{run.name} ({run.family})") for run in group]
        told += group
    for group in _groups(told):
        if len({run.setting for run in group}) > 1:
            raise InputError(
                f"the runs of {group[0].name} have different settings; give their folders apart"
            )
    return tuple(told)


def _groups(runs: Sequence[Recorded]) -> list[list[Recorded]]:
    groups: dict[str, list[Recorded]] = defaultdict(list)
    for run in runs:
        groups[run.name].append(run)
    return list(groups.values())


def _records(run: Recorded) -> tuple[Any, ...]:
    try:
        return tuple(read_records(run.path / "metrics.jsonl"))
    except (ValueError, TypeError, KeyError):
        raise InputError(
            f"{run.path}/metrics.jsonl is damaged; resume the run, or leave it out"
        ) from None


def _manifest(run: Recorded) -> Manifest | None:
    """Who held what."""
    path = _beside(run, f"manifest-seed-{run.seed}.json")
    return Manifest.load(path) if path else None


def _unlike(runs: Sequence[Recorded]) -> Iterator[str]:
    """What differs though only the method should."""
    end = "so differences between methods are not the methods' alone."
    for name in SHOWN:
        if len({str(run.identity.get(name)) for run in runs}) > 1:
            yield f"The runs differ in {name.replace('_', ' ')}, {end}"
    paths: dict[int, set[Path]] = defaultdict(set)
    for run in runs:
        if path := _beside(run, f"manifest-seed-{run.seed}.json"):
            paths[run.seed].add(path.resolve())
    for seed, found in sorted(paths.items()):
        first, *others = map(Manifest.load, sorted(found))
        if any(other != first for other in others):
            yield f"Not all runs of seed {seed} had the same clients' and server's data, {end}"


def _configurations(runs: Sequence[Recorded]) -> dict[str, str]:
    """The configurations of the runs, each once, under the first that has it."""
    found: dict[str, str] = {}
    for run in runs:
        path = _beside(run, "config.toml")
        text = path.read_text(encoding="utf-8", errors="replace") if path else ""
        if text and text not in found.values():
            found[f"{run.name}, seed {run.seed}" if run.name in found else run.name] = text
    return found if len(found) != 1 else {"config.toml": next(iter(found.values()))}


def _beside(run: Recorded, name: str) -> Path | None:
    """A file of the run, of its method, or of its comparison."""
    folders = (run.path, *run.path.resolve().parents[:2])
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


def _settings(runs: Sequence[Recorded], manifest: Manifest | None) -> dict[str, str]:
    settings: dict[str, str] = {}
    if manifest:
        settings = {
            "data": manifest.dataset,
            "clients": f"{len(manifest.clients):,}, {manifest.partition}",
            "server": manifest.server_line,
        }
    for name in SHOWN:
        said = {str(run.identity.get(name)): run.name for run in runs}
        one, *others = said
        if others:
            settings[name] = "; ".join(f"{value} ({who})" for value, who in said.items())
        elif one != "None":
            settings[name] = f"{int(one):,}" if one.isdecimal() else one
    for run in runs:
        settings[run.name] = str(run.identity["algorithm"])
    versions = {
        ", ".join(f"{what} {which}" for what, which in run.versions.items()) for run in runs
    }
    return settings | {"versions": "; ".join(sorted(versions))}
