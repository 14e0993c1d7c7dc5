"""One run of one source: its pages are read and saved, each with its cursor in one commit."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from penstock.connect.connector import shares
from penstock.connect.page import RECORD_BYTES_MAX, RECORDS_MAX, Change, Changed, Page, Record, Tally, Unchanged
from penstock.connect.standing import Memory
from penstock.connect.web import Http
from penstock.data.database import Database
from penstock.model.parameters import Bindable, size_of
from penstock.model.sql_files import load
from penstock.model.times import day_of, text_of_micros

if TYPE_CHECKING:
    from penstock.app import App
    from penstock.connect.source import Source

SQL = load("penstock.connect", "sources.sql")
IDS_A_STATEMENT = 40  # in the statement `known`
ROWS_A_COMMIT = 500  # of a page; a larger one is split, with a warning, and its cursor comes with the last part
BYTES_A_COMMIT = 1_000_000  # a quarter of what a unit takes: the handler may write each record twice more
ACTIVE_PAGE = 2_000
MISSED_TIMES = 2  # complete runs that lack a record before it is gone
GONE_SHARE = 0.9  # of what was there: a run that lacks more than this proves nothing
_log = logging.getLogger("penstock.connect")


class Known(NamedTuple):
    """What is saved of a record."""

    digest: str
    missed: int
    seen_on: str  # the day
    data: str | None = None
    is_gone: bool = False


class Running:
    """Reads a source from its cursor on. What it counted is in `tally`, also after a failure."""

    def __init__(self, home: App, source: Source, source_id: int, cursor: str | None, memory: Memory) -> None:
        self._home = home
        self._db: Database = home.db
        self._source = source
        self._connector = source.connector
        self._id = source_id
        self._cursor = cursor
        self._memory = memory
        self.tally = Tally(cursor=cursor)
        self.answer: dict[str, str] = {}
        self.is_complete = False
        self.has_missed = memory.has_missed
        self.is_full = cursor is None or memory.full_due
        self._active: dict[str, Known] | None = None
        self._seen: set[str] = set()

    async def run(self) -> None:
        """Raise what stopped the run; what was saved before stays saved."""
        fresh = self._memory.full_due or self._memory.has_missed or not self._memory.runs
        client, pace = self._source.client, self._source.pace
        http = Http(client, self._connector, pace, self.tally, {} if fresh else self._memory.answer)
        cursor = None if self.is_full else self._cursor
        try:
            async with aclosing(cast(Any, self._connector.fetch(cursor, http))) as pages:
                async for page in pages:
                    await self._take(page)
        except Unchanged:
            self.tally.unchanged = True
            return
        self.answer = http.remembered
        if self.is_complete:
            await self._mark_missing()

    async def _take(self, page: Page) -> None:
        name, is_first = self._connector.name, self.tally.pages == 0
        if len(page.records) > RECORDS_MAX:
            raise Changed(f"{name} sent a page of {len(page.records):,} records; {RECORDS_MAX:,} are allowed.")
        if foreign := next((each for each in page.records if each.source not in ("", name)), None):
            raise Changed(f"{name} yielded the record {foreign.id} of another source, {foreign.source}.")
        if (why := self._connector.complaint(page, is_first=is_first)) is not None:
            raise Changed(f"{name} is not what it was: {why}.")
        self.tally.pages += 1
        self.tally.read += len(page.records) + page.unreadable if page.read is None else page.read
        self.tally.candidates += len(page.records)
        if is_first:
            self.tally.shares = shares(page)
        records = list({each.id: each for each in page.records}.values())
        self.is_complete = page.complete
        self._seen.update(each.id for each in records)
        digests = {each.id: each.digest for each in records}
        known = await self._known(digests)
        await self._save(records, digests, known, page.cursor)
        if page.cursor is not None:
            self.tally.cursor = page.cursor

    async def _known(self, digests: Mapping[str, str]) -> dict[str, Known]:
        """Return what is saved of these records: one row each, since those that are active are read once a run."""
        if (self.is_full or self._connector.reads_all) and self._memory.runs and self._active is None:
            self._active = {id: row async for id, row in self._read_active()}
        active = self._active or {}
        known = {id: active[id] for id in digests if id in active}
        for row in await self._rows([id for id in digests if id not in known or known[id].digest != digests[id]]):
            known[row.item_id] = Known(
                row.content_hash, row.missed, row.last_seen_at[:10], row.data, row.gone_at is not None
            )
        return known

    async def _rows(self, ids: Sequence[str]) -> list[Any]:
        found: list[Any] = []
        for start in range(0, len(ids), IDS_A_STATEMENT):
            part = ids[start : start + IDS_A_STATEMENT]
            padded = [*part, *[None] * (IDS_A_STATEMENT - len(part))]
            found += await self._db.rows(
                SQL["known"], {"source": self._id} | {f"i{n}": id for n, id in enumerate(padded)}
            )
        return found

    async def _read_active(self) -> Any:
        pages = self._db.pages(SQL["active"], key="item_id", size=ACTIVE_PAGE, source=self._id, after="")
        async for page in pages:
            for row in page:
                yield row.item_id, Known(row.content_hash, row.missed, row.last_seen_at[:10])

    async def _save(
        self, records: list[Record], digests: Mapping[str, str], known: Mapping[str, Known], cursor: str | None
    ) -> None:
        now = self._home._clock.now()
        moment, today = text_of_micros(now), day_of(now)
        rows: list[dict[str, Bindable]] = []
        changes: list[Change] = []
        seen: list[str] = []
        for record in records:
            row, digest = known.get(record.id), digests[record.id]
            if row is None or row.digest != digest or row.is_gone:
                at = record.fetched_at or moment
                stamped = Record(record.id, record.data, record.url, record.raw, self._connector.name, at)
                changes.append(self._change(stamped, row))
                rows.append(self._row(stamped, digest))
            elif row.missed or row.seen_on != today:
                seen.append(record.id)
        parts = list(_parts(rows, changes))
        if len(parts) > 1:
            _log.warning("%s: a page of %d rows is saved in %d commits", self._connector.name, len(rows), len(parts))
        is_moved = cursor is not None and cursor != self.tally.cursor
        if not parts and (is_moved or seen):
            parts = [([], [])]
        for number, (part, found) in enumerate(parts, 1):
            last = number == len(parts)
            async with self._home.unit():
                if part:
                    self._db.write_many(SQL["save_record"], part)
                if seen and last:
                    marks = [{"now": moment, "source": self._id, "item": each} for each in seen]
                    self._db.write_many(SQL["seen"], marks)
                if found and self._source.function is not None:
                    await self._source.function(found)
                if is_moved and last:
                    self._db.write(SQL["advance"], cursor=cursor, id=self._id)
            for change in found:
                name = "inserted" if change.kind == "new" else change.kind
                setattr(self.tally, name, getattr(self.tally, name) + 1)

    def _change(self, record: Record, row: Known | None) -> Change:
        before = None if row is None or row.data is None else msgspec.json.decode(row.data)
        kind: Any = "new" if row is None else "back" if row.is_gone else "changed"
        return Change(kind, self._connector.name, record, before, not self._memory.runs)

    def _row(self, record: Record, digest: str) -> dict[str, Bindable]:
        data, raw = _json(record.data), _json(record.raw) if record.raw is not None else None
        if len(data) > RECORD_BYTES_MAX:
            raise Changed(f"{self._connector.name}: the record {record.id[:60]} has {len(data):,} bytes.")
        kept = raw if raw is not None and len(raw) <= RECORD_BYTES_MAX else None
        read: dict[str, Bindable] = {"item_id": record.id, "url": record.url, "data": data, "raw_json": kept}
        return {**read, "source_id": self._id, "content_hash": digest, "fetched_at": record.fetched_at}

    async def _mark_missing(self) -> None:
        """Note what a complete run lacks, and report as gone what two of them lacked."""
        active = self._active
        if active is None:
            active = {id: row async for id, row in self._read_active()}
        missing = [id for id in active if id not in self._seen]
        self.has_missed = False
        if not missing or not self._seen or len(missing) > GONE_SHARE * len(active):
            return
        gone = [id for id in missing if active[id].missed + 1 >= MISSED_TIMES]
        self.has_missed = len(gone) < len(missing)
        now = text_of_micros(self._home._clock.now())
        for start in range(0, len(missing), ROWS_A_COMMIT):
            part = missing[start : start + ROWS_A_COMMIT]
            ended = [id for id in part if active[id].missed + 1 >= MISSED_TIMES]
            found = [self._gone(row, now) for row in await self._rows(ended)]
            async with self._home.unit():
                waiting = [{"source": self._id, "item": id} for id in part if active[id].missed + 1 < MISSED_TIMES]
                if waiting:
                    self._db.write_many(SQL["missed"], waiting)
                if ended:
                    self._db.write_many(SQL["gone"], [{"now": now, "source": self._id, "item": id} for id in ended])
                if found and self._source.function is not None:
                    await self._source.function(found)
            self.tally.gone += len(ended)

    def _gone(self, row: Any, now: str) -> Change:
        data = msgspec.json.decode(row.data)
        return Change("gone", self._connector.name, Record(row.item_id, data, fetched_at=now), data)


def _json(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, UnicodeError, RecursionError) as error:
        raise Changed(f"A record cannot be saved as JSON: {error}.") from error


def _parts(
    rows: Sequence[dict[str, Bindable]], changes: Sequence[Change]
) -> Iterable[tuple[list[dict[str, Bindable]], list[Change]]]:
    part: list[dict[str, Bindable]] = []
    found: list[Change] = []
    size = 0
    for row, change in zip(rows, changes, strict=True):
        bytes_ = size_of(row)
        if part and (len(part) >= ROWS_A_COMMIT or size + bytes_ > BYTES_A_COMMIT):
            yield part, found
            part, found, size = [], [], 0
        part.append(row)
        found.append(change)
        size += bytes_
    if part:
        yield part, found
