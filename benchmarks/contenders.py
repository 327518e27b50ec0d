"""Who takes part: Bellwether, the loops written by hand, and other libraries where installed."""

from pathlib import Path

from referee import Entry

ENVIRONMENTS = Path(__file__).parents[1] / ".rivals"

OURS = Entry("ours", "Bellwether", "ours")

# The heap keeps what it has, so activations do not go back to the kernel at every step. 32 MiB is
# the most that glibc takes for the first.
KEEP_HEAP = {
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(512 << 20),
    "MALLOC_TOP_PAD_": str(64 << 20),
}
_TWO = ("--processes", "2")
PLAIN = (
    Entry("plain", "plain loop, 2 threads", "plain"),
    Entry("plain-2", "plain loop, 2 processes", "plain", _TWO),
    Entry("plain-2-malloc", "the same with MALLOC_* set", "plain", _TWO, environment=KEEP_HEAP),
)


def _rival(name: str, title: str, module: str, *arguments: str) -> Entry:
    python = ENVIRONMENTS / module / "bin" / "python"
    return Entry(name, title, f"rivals.{module}", arguments, str(python))


RIVALS = (
    _rival("pfl", "pfl-research", "pfl"),
    _rival("pfl-2", "pfl-research, 2 processes", "pfl", *_TWO),
    _rival("flower", "Flower (Ray)", "flower"),
    _rival("fedlab", "FedLab", "fedlab"),
    _rival("fluke", "fluke", "fluke"),
    _rival("fedjax", "FedJAX", "fedjax"),
)


def names() -> list[str]:
    """Every rival's name."""
    return [entry.name for entry in RIVALS]


def present(wanted: list[str] | None) -> list[Entry]:
    """Who takes part; says who is not installed."""
    entries = list(PLAIN)
    for entry in RIVALS:
        if wanted is not None and entry.name not in wanted:
            continue
        if Path(entry.python).exists():
            entries.append(entry)
        else:
            module = entry.module.removeprefix("rivals.")
            print(f"no {entry.title}: `sh benchmarks/environments.sh {module}` installs it")
    return entries
