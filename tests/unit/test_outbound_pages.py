"""Pages read through blobs, and what blobs know and how long they stay."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.blobs.folder import BlobFolder, Expiry
from penstock.model.errors import BadParameter, Gone, PenstockError, Refused, Unparsable
from penstock.outbound.client import Client
from penstock.outbound.pages import Page, PageCache
from penstock.testing.loop import VirtualLoop, VirtualTime, virtual

URL = "https://apps.example/us/app/id17?token=abc"
KEY = "app/17/page.html"


class Store:
    """A host with one page that changes with every call."""

    def __init__(self) -> None:
        self.calls = 0
        self.status = 200
        self.word = "page"

    async def __call__(self, scope: Any, receive: Any, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        self.calls += 1
        headers = [(b"content-type", b"text/html; charset=utf-8")]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": f"{self.word} {self.calls}".encode()})


class Setup:
    def __init__(self, path: Path) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.time = VirtualTime(loop)
        self.store = Store()
        self.blobs = BlobFolder(
            path, clock=self.time.clock, expiries=[Expiry("app/", days=30), Expiry("debug/", days=7)]
        )
        self.client = Client(clock=self.time.clock)
        self.client.mount("https://apps.example", self.store)
        self.cache = PageCache(self.blobs, self.client, self.time.clock)


@virtual
@pytest.mark.spec("A9-03")
async def test_a_second_read_makes_no_call(tmp_path: Path) -> None:
    setup = Setup(tmp_path)

    first = await setup.cache.get(URL, key=KEY)
    await setup.time.advance(hours=23)
    second = await setup.cache.get(URL, key=KEY)

    assert (first.text(), first.cached) == ("page 1", False)
    assert (second.text(), second.cached) == ("page 1", True)
    assert setup.store.calls == 1
    kept = await setup.blobs.read(KEY)
    assert kept is not None
    assert kept.content_type == "text/html; charset=utf-8"
    assert kept.metadata["scraped_at"] == "2026-01-01T00:00:00.000Z" == second.scraped_at
    assert "abc" not in kept.metadata["url"]


@virtual
@pytest.mark.spec("A9-04", "G2-34")
async def test_a_page_is_read_again_when_it_is_too_old_or_is_to_be_refreshed(tmp_path: Path) -> None:
    setup = Setup(tmp_path)
    read = setup.cache.get

    await read(URL, key=KEY)
    await setup.time.advance(hours=24)
    assert (await read(URL, key=KEY)).text() == "page 1"
    await setup.time.advance(seconds=1)
    assert (await read(URL, key=KEY)).text() == "page 2"
    assert (await read(URL, key=KEY, max_age=0)).text() == "page 3"
    assert (await read(URL, key=KEY, bypass=True)).text() == "page 4"
    await setup.time.advance(days=14)
    assert (await read(URL, key=KEY, max_age=30 * 86_400)).text() == "page 4"
    assert (await read(URL, key=KEY, bypass=True)).text() == "page 5"
    assert (await read(URL, key=KEY)).text() == "page 5"


@virtual
@pytest.mark.spec("A9-05", "G2-34")
@pytest.mark.parametrize("status, error", [(403, Refused), (404, Gone), (500, PenstockError)])
async def test_what_is_no_2xx_is_raised_and_not_kept(tmp_path: Path, status: int, error: type[PenstockError]) -> None:
    setup = Setup(tmp_path)
    setup.store.status = status

    with pytest.raises(error) as caught:
        await setup.cache.get(URL, key=KEY)

    assert caught.value.facts["status"] == status
    assert await setup.blobs.list() == []
    setup.store.status = 200
    assert (await setup.cache.get(URL, key=KEY)).text() == "page 2"


def is_page(page: Page) -> bool:
    return page.text().startswith("page")


@virtual
@pytest.mark.spec("A9-05", "G2-34")
async def test_a_bad_page_is_put_aside_and_read_again(tmp_path: Path) -> None:
    setup = Setup(tmp_path)
    setup.store.word = "captcha"

    with pytest.raises(Unparsable, match=f"debug/{KEY}") as caught:
        await setup.cache.get(URL, key=KEY, good=is_page)

    assert "abc" not in str(caught.value)
    assert await setup.blobs.list() == [f"debug/{KEY}"]
    assert await setup.blobs.get(f"debug/{KEY}") == b"captcha 1"
    setup.store.word = "page"
    assert (await setup.cache.get(URL, key=KEY, good=is_page)).text() == "page 2"


@virtual
@pytest.mark.spec("A9-05", "G2-34")
async def test_a_page_found_bad_later_is_not_served_again(tmp_path: Path) -> None:
    setup = Setup(tmp_path)
    setup.store.word = "captcha"
    page = await setup.cache.get(URL, key=KEY)

    setup.store.word = "page"
    assert (await setup.cache.get(URL, key=KEY, good=is_page)).text() == "page 2"
    await setup.cache.reject(page)

    assert await setup.blobs.list() == [f"debug/{KEY}"]
    assert (await setup.cache.get(URL, key=KEY)).text() == "page 3"


@pytest.mark.fault("F19")
@virtual
@pytest.mark.spec("A9-02", "G2-35", "A15-22")
async def test_blobs_go_when_they_are_older_than_their_prefix_allows(tmp_path: Path) -> None:
    setup = Setup(tmp_path)
    await setup.cache.get(URL, key=KEY)
    await setup.blobs.put("other/17", b"")
    await setup.blobs.put("debug/17", b"")

    await setup.time.advance(days=29)
    assert await setup.blobs.expire() == 1
    assert await setup.blobs.list() == [KEY, "other/17"]
    await setup.time.advance(days=1)
    assert await setup.blobs.expire() == 0
    await setup.time.advance(days=1)
    assert await setup.blobs.expire() == 1
    assert await setup.blobs.list() == ["other/17"]
    assert os.listdir(tmp_path / "app" / "17") == []


@virtual
async def test_blobs_go_in_portions(tmp_path: Path) -> None:
    setup = Setup(tmp_path)
    for number in range(5):
        await setup.blobs.put(f"app/{number}", b"")
    await setup.time.advance(days=31)

    assert [await setup.blobs.expire(limit=2) for _ in range(4)] == [2, 2, 1, 0]


@virtual
@pytest.mark.spec("A9-01")
async def test_what_is_said_about_a_blob_comes_back_with_it(tmp_path: Path) -> None:
    setup = Setup(tmp_path)
    blobs = setup.blobs

    await blobs.put("a", b"one", content_type="text/plain", metadata={"by": "me", "é": "ü"})
    blob = await blobs.read("a")
    assert blob is not None
    assert (blob.key, blob.content, blob.size) == ("a", b"one", 3)
    etag = blob.etag
    assert (blob.content_type, blob.metadata) == ("text/plain", {"by": "me", "é": "ü"})
    assert blob.stored_at == setup.time.clock.now()
    assert await blobs.list() == ["a"]

    await blobs.put("a", b"two")
    blob = await blobs.read("a")
    assert blob is not None
    assert blob.etag != etag
    assert (blob.content_type, blob.metadata) == (None, {})

    await blobs.put("a", b"two", content_type="text/html")
    await blobs.put("a", b"two")
    blob = await blobs.read("a")
    assert blob is not None
    assert blob.content_type is None

    await blobs.delete("a")
    assert await blobs.read("a") is None
    assert os.listdir(tmp_path) == []
    with pytest.raises(BadParameter, match="at most"):
        await blobs.put("a", b"", metadata={"long": "x" * 9_000})


@pytest.mark.fault("F19")
@virtual
@pytest.mark.spec("A9-01")
async def test_a_crash_between_note_and_content_leaves_each_with_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = BlobFolder(tmp_path)
    await blobs.put("a", b"zero", metadata={"n": "0"})
    await blobs.put("a", b"old", metadata={"n": "1"})
    replace = os.replace

    def crashes(source: str, target: str, **folders: int) -> None:
        if target == "a":
            raise KeyboardInterrupt
        replace(source, target, **folders)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", crashes)
        for new in (b"new", b"newer"):
            with pytest.raises(KeyboardInterrupt):
                blobs._put("a", new, {"metadata": {"n": "2"}})

    blob = await blobs.read("a")
    assert blob is not None
    assert (blob.content, blob.metadata) == (b"old", {"n": "1"})


@virtual
async def test_a_folder_without_a_clock_does_not_guess_ages(tmp_path: Path) -> None:
    with pytest.raises(BadParameter, match="needs a clock"):
        await BlobFolder(tmp_path, expiries=[Expiry("", days=1)]).expire()


@virtual
@pytest.mark.parametrize("note", [b"", b"{", b"[]", b'{"x": 1}', b"\xff"])
async def test_a_damaged_note_costs_the_attributes_and_nothing_else(tmp_path: Path, note: bytes) -> None:
    blobs = BlobFolder(tmp_path)
    await blobs.put("a", b"content", content_type="text/plain")
    (tmp_path / ".about-a").write_bytes(note)

    blob = await blobs.read("a")

    assert blob is not None
    assert (blob.content, blob.content_type) == (b"content", None)
    await blobs.put("a", b"content", content_type="text/html")
    assert (blob := await blobs.read("a")) is not None
    assert blob.content_type == "text/html"
