"""How the tests visit the stand-in App Store, and the samples that its answers are held against."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from penstock_systems.standins.appstore import FIRST_DAY, Catalogue, Manners, Truth, make_store, store_of

QUIET = Manners(limits={}, latency_seconds={}, faults=())
FRONT = {"X-Apple-Store-Front": "143441,12"}
NATIVE = {"X-Apple-Store-Front": "143441,24 t:native"}


@asynccontextmanager
async def visiting(
    manners: Manners = QUIET, catalogue: Catalogue | None = None, agent: str = "tests"
) -> AsyncIterator[httpx2.AsyncClient]:
    elapsed = asyncio.get_running_loop().time
    store = make_store(catalogue or Catalogue(), lambda: FIRST_DAY.timestamp() + elapsed(), manners)
    transport = httpx2.ASGITransport(app=store)
    headers = {"user-agent": agent}
    async with httpx2.AsyncClient(transport=transport, base_url="http://apple.test", headers=headers) as client:
        yield client


def faulty(*faults: Any, **others: Any) -> Manners:
    return Manners(limits={}, latency_seconds={}, faults=faults, **others)


def truth_of(client: httpx2.AsyncClient) -> Truth:
    return store_of(client._transport.app).truth()  # type: ignore[attr-defined]


def page_path(catalogue: Catalogue, index: int, country: str = "us") -> str:
    return f"/{country}/app/{catalogue.app(index).slug}/id{catalogue.track_id(index)}"


def embedded_in(page: str, script: str = "serialized-server-data") -> str:
    found = re.search(rf'<script[^>]*id="{script}"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return found[1]


def read_page(page: str) -> Any:
    return json.loads(embedded_in(page))


def shelves_of(page: str) -> dict[str, Any]:
    shelves: dict[str, Any] = read_page(page)["data"][0]["data"]["shelfMapping"]
    return shelves


def sold(catalogue: Catalogue, country: str = "us") -> list[int]:
    return [index for index in range(catalogue.apps) if catalogue.sold(index, 0, country)]


def rich(catalogue: Catalogue, index: int) -> bool:
    """An app that has everything, and is there."""
    app = catalogue.app(index)
    return catalogue.sold(index, 0, "us") and app.rating_count(0) > 1_000 and app.versions(0) > 1


def differences(sample: Any, found: Any, path: str = "") -> list[str]:
    """Where an answer lacks a key of the sample, or has another type there."""
    if type(sample) is not type(found):
        return [f"{path}: {type(found).__name__} instead of {type(sample).__name__}"]
    if isinstance(sample, dict):
        missing = [f"{path}: no {key}" for key in sample if key not in found]
        both = (differences(sample[key], found[key], f"{path}.{key}") for key in sample if key in found)
        return [*missing, *(problem for problems in both for problem in problems)]
    if isinstance(sample, list) and sample:
        return differences(sample[0], found[0], f"{path}[0]") if found else [f"{path}: empty"]
    return []
