"""`get`: a data set from the Hugging Face hub, into the user's cache folder."""

from pathlib import Path

from bellwether.core.errors import InputError
from bellwether.data.catalogue import Entry, entry_of
from bellwether.data.places import VARIABLE, user_cache


def get(name: str, *, endpoint: str | None = None, quiet: bool = False) -> Path:
    """Download what is missing of a data set; the folder of its files, where `load` finds them.

    The checksum of every file is compared, a broken download is gone on with. `endpoint` is the
    address of the hub or of a mirror, by default that of the environment variable HF_ENDPOINT.
    """
    entry = entry_of(name)
    if entry.made_of:
        return get(entry.made_of, endpoint=endpoint, quiet=quiet)
    if not entry.folders:
        raise InputError(f"{name} needs no download; load it")
    if entry.hub is None:
        raise InputError(f"the hub has no {name} that Bellwether can read; {by_hand(entry)}")
    cache = user_cache()
    if cache is None:
        raise InputError(f"no folder to download into; set XDG_CACHE_HOME to one to get {name}")
    try:
        from bellwether.data import hub
    except ImportError as error:
        raise InputError(
            f"downloading {name} needs huggingface-hub; run: pip install 'bellwether-fl[hub]'"
        ) from error
    folder = cache / entry.folders[0]
    hub.fetch(entry.hub, folder, endpoint, quiet, otherwise=by_hand(entry))
    return folder


def by_hand(entry: Entry) -> str:
    """What to do without the hub."""
    names = " and ".join(file.name for file in entry.hub.files) if entry.hub else "its files"
    return f"put {names} into {VARIABLE}/{entry.folders[0]}"
