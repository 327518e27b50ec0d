"""Imports go one way, and heavy packages stay in their own rooms."""

import ast
from collections.abc import Iterator
from pathlib import Path

import bellwether

PACKAGE = Path(bellwether.__file__).parent
LIBRARY = {"core", "algorithms", "federation", "data", "models", "engines", "compression"}
ALLOWED = {
    "core": {"core"},
    **{room: {room, "core"} for room in LIBRARY - {"core"}},
    "experiments": {"experiments", *LIBRARY},
    "report": {"report", "experiments", *LIBRARY},
    "testing": {"testing", "experiments", *LIBRARY},
    "cli": {"cli", "report", "testing", "experiments", *LIBRARY},
}
"""Which rooms a room may import."""

KEPT_OUT = {
    "ray": lambda path: path.parts[0] != "engines" or not path.name.startswith("ray_"),
    "flwr": lambda path: path.parts[0] in {"core", "algorithms"},
    "torch.optim": lambda path: path.parts[0] in {"core", "algorithms"},
    "torch.multiprocessing": lambda path: path.parts[0] in {"core", "algorithms"},
    "plotly": lambda path: path.parts[0] != "report",
    "pyarrow": lambda path: path != Path("data/parquet.py"),
    "datasets": lambda path: path != Path("federation/partition/flower.py"),
    "flwr_datasets": lambda path: True,
    "PIL": lambda path: (
        path
        not in {Path("data/pictures.py"), Path("data/cursive.py"), Path("report/contact_sheet.py")}
    ),
    "huggingface_hub": lambda path: path != Path("data/hub.py"),
    "torch.utils.tensorboard": lambda path: path != Path("report/tensorboard.py"),
    "tensorboard": lambda path: path != Path("report/tensorboard.py"),
    "mlflow": lambda path: path != Path("report/mlflow.py"),
    "httpx": lambda path: path != Path("data/hub.py"),
}
"""Packages, and where they must not be imported."""


def imported(source: str, path: Path) -> Iterator[str]:
    """Dotted names of all that a file imports, wherever in the file; `path` is in the package."""
    here = ["bellwether", *path.parent.parts]
    aliases: dict[str, str] = {}
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
                root = alias.name.partition(".")[0]
                aliases[alias.asname or root] = alias.name if alias.asname else root
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield f"{module}.{alias.name}"
    for node in ast.walk(tree):  # `import torch` and then torch.optim.SGD
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield f"{aliases.get(node.value.id, '')}.{node.attr}"


def violations(source: str, path: Path) -> list[str]:
    found = []
    room = path.parts[0]
    for name in imported(source, path):
        parts = name.split(".")
        if parts[0] == "bellwether" and len(path.parts) > 1:
            target = parts[1] if len(parts) > 1 else "bellwether itself"
            if target not in ALLOWED.get(room, set()) | {"version"}:
                found.append(f"{path} imports {target}")
        for package, forbidden in KEPT_OUT.items():
            if (name == package or name.startswith(f"{package}.")) and forbidden(path):
                found.append(f"{path} imports {package}")
    return found


def test_imports_go_one_way():
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) > 20
    found = [v for f in files for v in violations(f.read_text(), f.relative_to(PACKAGE))]
    assert found == []


def test_every_room_has_a_rule():
    rooms = {path.parent.name for path in PACKAGE.glob("*/*.py")}
    assert rooms <= ALLOWED.keys()


def test_a_wrong_import_would_be_noticed():
    for path, source in {
        "core/sgd.py": "from bellwether.algorithms.fedavg import FedAvg",
        "core/tasks.py": "from bellwether import train",
        "core/wire.py": "from bellwether.report import page",
        "core/vector.py": "def f():\n    import bellwether.engines.local",
        "core/rounds.py": "from ..engines import Local",
        "core/streams.py": "import bellwether",
        "algorithms/fedavg.py": "from bellwether.federation import federate",
        "algorithms/safari.py": "import torch\ntorch.optim.SGD([], lr=1)",
        "algorithms/fsl.py": "from torch import optim",
        "core/files.py": "import torch.multiprocessing as mp",
        "data/loader.py": "from PIL import Image",
        "engines/local.py": "from bellwether.experiments import training",
        "experiments/summary.py": "from bellwether.report.table import table",
        "report/page.py": "from bellwether.cli.console import out",
        "federation/manifest.py": "import plotly.graph_objects as go",
        "cli/app.py": "import pyarrow",
        "report/trackers.py": "import mlflow",
        "report/watch.py": "from torch.utils.tensorboard import SummaryWriter",
        "engines/ray.py": "import ray",
    }.items():
        assert len(violations(source, Path(path))) == 1, (path, source)
    for path, source in {
        "core/sgd.py": "from .vector import Vector\nfrom bellwether.core.streams import key",
        "report/page.py": "import plotly\nfrom bellwether.experiments import results",
        "data/parquet.py": "import pyarrow.parquet as pq",
        "data/pictures.py": "from PIL import Image",
        "cli/app.py": "from bellwether.report import page",
        "engines/ray_crew.py": "import ray",
    }.items():
        assert violations(source, Path(path)) == [], (path, source)
