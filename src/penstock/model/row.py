"""A row of a user's query: a tuple whose values also have names."""

from __future__ import annotations

from functools import lru_cache
from typing import Any


class Row(tuple[Any, ...]):
    """`row.title`, `row["title"]` and `row[0]` are the same; `row.asdict()` for a dictionary."""

    __slots__ = ()
    columns: tuple[str, ...] = ()
    _places: dict[str, int] = {}  # noqa: RUF012 (each row type has its own)

    def __getitem__(self, key: Any) -> Any:
        if type(key) is str:
            try:
                key = self._places[key]
            except KeyError:
                raise KeyError(f"{key!r}; the columns are {', '.join(self.columns)}") from None
        return tuple.__getitem__(self, key)

    def __getattr__(self, name: str) -> Any:
        try:
            return tuple.__getitem__(self, self._places[name])
        except KeyError:
            raise AttributeError(f"no column {name!r}; the columns are {', '.join(self.columns)}") from None

    def asdict(self) -> dict[str, Any]:
        return dict(zip(self.columns, self, strict=True))

    def __repr__(self) -> str:
        return "Row(" + ", ".join(f"{name}={value!r}" for name, value in zip(self.columns, self, strict=True)) + ")"


@lru_cache(maxsize=1024)
def row_type(columns: tuple[str, ...]) -> type[Row]:
    places = {name: place for place, name in enumerate(columns)}
    return type("Row", (Row,), {"__slots__": (), "columns": columns, "_places": places})
