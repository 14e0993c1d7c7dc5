"""A connector that a TOML file or a dict describes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from penstock.connect import formats
from penstock.connect.connector import Connector
from penstock.connect.fields import Find, find_json, needed, order_key, plain, read_field
from penstock.connect.page import Blocked, Changed, Page, Record
from penstock.connect.paging import paging_of
from penstock.connect.singer import read_tap
from penstock.connect.spec import Field, Spec, header_values, read_spec
from penstock.connect.web import Http
from penstock.model.errors import Unparsable
from penstock.model.times import in_seconds


class DeclaredConnector(Connector):
    """`DeclaredConnector("connectors/olx.toml")`, or a dict with the same words."""

    def __init__(self, given: str | Path | Mapping[str, Any]) -> None:
        spec = self.spec = read_spec(given)
        self.kind: str = spec.kind  # type: ignore[misc]
        self.name, self.base, self.rate = spec.name, spec.base, spec.rate
        self.every, self.expect, self.blocked = in_seconds(spec.every), spec.expect, spec.blocked
        self.robots = spec.robots if spec.robots is not None else spec.kind in ("html", "jsonld", "rss")
        self.full_every = in_seconds(spec.cursor.full_every) if spec.cursor else 0.0
        single = spec.paginator.kind == "single" and spec.kind != "singer"
        self.one_page = single or spec.order == "descending"
        self.reads_all = spec.kind != "singer" and (spec.cursor is None or not spec.cursor.filter)
        self._fields = _fields_of(spec)
        self._lag = in_seconds(spec.cursor.lag) if spec.cursor else 0.0

    async def fetch(self, cursor: str | None, http: Http) -> AsyncIterator[Page]:
        """Yield the pages of the source, as its description says."""
        if self.spec.kind == "singer":
            async for page in read_tap(self.spec, self._fields, cursor):
                yield page
            return
        self.headers = header_values(self.spec)
        paging = paging_of(self.spec)
        high, behind = cursor, False
        while (asked := paging.next()) is not None:
            nodes, find, whole = await self._ask(http, *asked)
            again = paging.comes_again(len(nodes))
            records, unreadable, keys = self._records([] if again else nodes, find)
            fresh, newest = self._fresh(records, keys, cursor)
            high = _higher(high, newest, self.spec)
            behind = bool(records) and not fresh and self.spec.order == "descending"
            paging.saw(whole, len(nodes), [record.id for record in records], find)
            last = behind or not paging.has_more
            # Newest first: until the last page is saved, what lies between it and the cursor is not.
            saved = high if last or self.spec.order == "ascending" else None
            everything = cursor is None or self.spec.cursor is None or not self.spec.cursor.filter
            complete = last and not behind and everything and paging.is_whole and self.spec.kind != "rss"
            yield Page(fresh, saved, complete, 0 if again else len(nodes), unreadable)
            if behind:
                return

    async def _ask(self, http: Http, url: str, params: Mapping[str, Any]) -> tuple[list[Any], Find, Any]:
        response = await http.get(url, params={**(self.spec.params if not url else {}), **params})
        is_page = response.body[:200].lstrip()[:1] == b"<"
        if self.spec.kind in ("json", "snapshot") and is_page:
            raise Blocked(f"{response.url} answered with a page instead of JSON.", url=response.url)
        try:
            return await formats.split(self.spec, response.body, response.text, response.json)
        except Unparsable as error:
            raise Changed(str(error)) from error

    def _records(self, nodes: list[Any], find: Find) -> tuple[list[Record], int, dict[str, Any]]:
        records: dict[str, Record] = {}
        keys: dict[str, Any] = {}
        unreadable = 0
        for node in nodes:
            record = make_record(self.spec, self._fields, node, find)
            if record is None:
                unreadable += 1
                continue
            records[record.id] = record
            if self.spec.cursor is not None:
                keys[record.id] = find(node, self.spec.cursor.path)
        return list(records.values()), unreadable, keys

    def _fresh(
        self, records: list[Record], keys: dict[str, Any], cursor: str | None
    ) -> tuple[list[Record], tuple[float, str] | None]:
        """Return the records after the cursor less its lag, and the newest cursor among all."""
        declared = self.spec.cursor
        if declared is None:
            return records, None
        valued = {id: (order_key(value, declared.type), str(value)) for id, value in keys.items()}
        known = [(key, text) for key, text in valued.values() if key is not None]
        newest = max(known, default=None)
        floor = None if cursor is None else order_key(cursor, declared.type)
        if floor is None or not declared.filter:
            return records, newest
        fresh = [each for each in records if (key := valued[each.id][0]) is None or key > floor - self._lag]
        return fresh, newest


def make_record(spec: Spec, fields: Mapping[str, str | Field], node: Any, find: Find) -> Record | None:
    """Return a node of an answer as a record, None where it has no id or nothing else."""
    id = read_field(node, spec.id if spec.kind != "jsonld" or spec.id != "id" else formats.JSONLD_ID, find)
    if id in (None, "") or isinstance(id, dict | list):
        return None
    data = {name: read_field(node, field, find) for name, field in fields.items()}
    if not any(value not in (None, "") for value in data.values()):
        return None
    url = str(read_field(node, spec.url, find) or "") if spec.url else ""
    with suppress(ValueError):  # what is no link stays as it is
        url = urljoin(spec.base, url) if url else ""
    raw = plain(node) if find is find_json else None
    return Record(str(id)[:300], data, url[:2_000], raw, spec.name)


def _fields_of(spec: Spec) -> dict[str, str | Field]:
    match spec.kind:
        case "jsonld":
            for module in ("selectolax.lexbor", "jmespath"):
                needed(module)
            numbers = {name: Field(formats.JSONLD[name], "number") for name in ("rooms", "area_m2", "lat", "lon")}
            return {**formats.JSONLD, **numbers, "price": Field(formats.JSONLD["price"], "price"), **spec.fields}
        case "rss":
            return {**formats.RSS, "posted_at": Field(formats.RSS["posted_at"], "iso"), **spec.fields}
        case _:
            return dict(spec.fields)


def _higher(high: str | None, newest: tuple[float, str] | None, spec: Spec) -> str | None:
    if newest is None or spec.cursor is None:
        return high
    known = None if high is None else order_key(high, spec.cursor.type)
    return high if known is not None and known >= newest[0] else newest[1]
