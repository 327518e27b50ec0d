"""What every client keeps, at one moment of a run; the next moment costs only what changed.

All moments share one dict, which is that of the newest. An older one holds what the change after
it replaced, and looks there first (Baker 1978, "Shallow binding in Lisp 1.5").
"""

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from bellwether.core.store import Record, Store

T = TypeVar("T")


class Snapshot(Mapping[int, T]):
    """A value for each client that keeps one. It stays what it is, whatever comes later."""

    def __init__(self, store: Store, records: dict[int, Record] | None = None) -> None:
        self.store = store
        self._records = {} if records is None else records
        self._size = len(self._records)
        self._next: tuple[Snapshot[T], dict[int, Record | None]] | None = None
        """The moment after this one, and what it replaced."""

    def __getitem__(self, client: int) -> T:
        record = self.record(client)
        if record is None:
            raise KeyError(client)
        value: T = record.value()
        return value

    def __contains__(self, client: object) -> bool:
        return self.record(client) is not None  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[int]:
        return (client for client in list(self._records) if client in self)

    def __len__(self) -> int:
        return self._size

    def __deepcopy__(self, memo: dict[int, Any]) -> "Snapshot[T]":
        draft: Draft[T] = Draft(Snapshot(self.store))
        for client, value in self.items():
            draft[client] = copy.deepcopy(value, memo)
        return draft.commit()

    def record(self, client: int) -> Record | None:
        """Where the client's value is."""
        moment = self
        while moment._next is not None:
            moment, replaced = moment._next
            if client in replaced:
                return replaced[client]
        return moment._records.get(client)

    def draft(self) -> "Draft[T]":
        """A beginning of the next moment."""
        return Draft(self)

    def after(self, changes: dict[int, Record]) -> "Snapshot[T]":
        """The next moment. Interrupted anywhere, this one still reads the same."""
        if self._next is not None:  # a second future of one moment: rare, so it may cost a copy
            own = {client: record for client in self if (record := self.record(client))}
            return Snapshot[T](self.store, own).after(changes)
        replaced = {client: self._records.get(client) for client in changes}
        later = Snapshot[T](self.store, self._records)
        later._size = self._size + sum(record is None for record in replaced.values())
        self._next = later, replaced
        self._records.update(changes)
        return later


class Draft(Generic[T]):
    """A snapshot on its way to the next: dropped, it was never there."""

    def __init__(self, before: Snapshot[T]) -> None:
        self._before = before
        self._changes: dict[int, Record] = {}

    def __setitem__(self, client: int, value: T) -> None:
        self._changes[client] = self._before.store.put(value)

    def __contains__(self, client: int) -> bool:
        return self._record(client) is not None

    def get(self, client: int) -> T | None:
        """What the client keeps by now, if anything."""
        record = self._record(client)
        return record.value() if record else None

    def of(self, clients: Iterable[int]) -> Snapshot[T]:
        """What these clients keep by now; a value is read when it is asked for."""
        records = ((client, self._record(client)) for client in clients)
        return Snapshot(self._before.store, {c: record for c, record in records if record})

    def commit(self) -> Snapshot[T]:
        """The next moment."""
        return self._before.after(self._changes) if self._changes else self._before

    def _record(self, client: int) -> Record | None:
        return self._changes.get(client) or self._before.record(client)
