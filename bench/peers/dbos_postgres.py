"""DBOS on PostgreSQL with synchronous_commit=on: as on SQLite, but for where it keeps its workflows."""

from __future__ import annotations

from dataclasses import replace

from bench.peers import dbos_sqlite


class Peer(dbos_sqlite.Peer):
    settings = replace(
        dbos_sqlite.Peer.settings,
        name="dbos-postgres",
        store="postgres",
        durability="fsync=on, synchronous_commit=on",
        share_percent=0.16,
        must_run=False,
    )

    def url(self, address: str) -> str:
        return address
