"""Twins of recorded answers, by `python -m tools.twin_answers`: they are read whole, and the fake store answers alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from penstock_systems.appstore.store.page import parse_page
from penstock_systems.standins.appstore import Catalogue, make_store
from tools.try_answers import Tried, main, try_answer
from tools.twin_answers import twin

pytestmark = pytest.mark.only_on("sqlite")  # nothing here is kept anywhere
RECORDED = Path(__file__).parent / "recorded"
FILES = sorted(RECORDED.iterdir())
NOON = 1_767_225_600.0


def records(name: str) -> list[dict[str, Any]]:
    told = msgspec.json.decode((RECORDED / name).read_bytes())
    found: list[dict[str, Any]] = told["results"]
    return found


@pytest.mark.spec("A13-12")
def test_every_recorded_answer_of_the_store_is_read_without_a_network_and_nothing_is_skipped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tried = {file.name: try_answer(file.read_bytes()) for file in FILES}
    assert {each.endpoint for each in tried.values()} == {
        "chart",
        "hints",
        "page",
        "reviews as JSON",
        "reviews as XML",
        "search or look-up",
    }
    assert all(each.skipped == 0 for each in tried.values())
    assert [name for name, each in tried.items() if each.things == 0] == ["04-hints.plist"]
    assert main([str(RECORDED)]) == 0
    assert f"{len(FILES)} answers, 0 that cannot be read." in capsys.readouterr().out


@pytest.mark.spec("A13-12")
def test_a_fractional_histogram_and_the_dates_of_a_script_are_read() -> None:
    page, _ = parse_page((RECORDED / "08-page.html").read_bytes(), 174753545)
    assert page.ratings is not None
    assert page.ratings.total == 29_481_802
    assert page.ratings.histogram == (1_226_159, 274_710, 696_048, 2_000_235, 25_284_650)
    assert "2 of 2 versions have a date" in try_answer((RECORDED / "09-page.html").read_bytes()).known


async def test_the_fake_store_answers_a_search_with_the_fields_the_types_and_the_size_of_a_recorded_one() -> None:
    catalogue = Catalogue(400, 6, 1)
    client = httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=make_store(catalogue, lambda: NOON)), base_url="https://itunes.apple.com"
    )
    async with client:
        asked = {"term": catalogue.markets[0].keywords[0], "entity": "software", "country": "us", "limit": "25"}
        made = msgspec.json.decode((await client.get("/search", params=asked)).content)["results"]
    real = records("12-search-or-look-up.json")
    assert {name for each in made for name in each} >= {name for each in real for name in each}
    for name, value in real[0].items():
        types = {type(each[name]) for each in made if name in each}
        assert types <= ({int, float} if type(value) in (int, float) else {type(value)}), name
    sizes = sorted(len(msgspec.json.encode(each)) for each in made)
    assert sizes[len(sizes) // 2] > 0.6 * min(len(msgspec.json.encode(each)) for each in real)
    assert len(made[0]["supportedDevices"]) == len(real[0]["supportedDevices"])


def test_a_twin_has_the_form_of_its_recording_and_none_of_its_names() -> None:
    recorded = (
        '{"resultCount":1,"results":[{"trackId":338986109,"trackName":"Green Ledger","sellerUrl":"https://ledger.com/x",'
        '"trackViewUrl":"https://apps.apple.com/us/app/green-ledger/id338986109","description":"Keep\\nyour \\u2022 books",'
        '"releaseDate":"2009-11-20T23:00:19Z","userRatingCount":4118,"wrapperType":"software"}]}'
    )
    made = twin(recorded)
    [before], [after] = (msgspec.json.decode(text)["results"] for text in (recorded, made))
    assert made == twin(recorded)
    assert not {"green", "ledger", "books", "338986109"} & set(made.lower().replace("/", " ").replace("-", " ").split())
    assert "338986109" not in made
    assert "ledger" not in made.lower()
    assert str(after["trackId"]) in after["trackViewUrl"]
    assert [len(str(after[name])) for name in ("trackId", "trackName", "description")] == [
        len(str(before[name])) for name in ("trackId", "trackName", "description")
    ]
    assert [after[name] for name in ("releaseDate", "userRatingCount", "wrapperType")] == [
        before[name] for name in ("releaseDate", "userRatingCount", "wrapperType")
    ]
    assert isinstance(try_answer(made.encode()), Tried)
