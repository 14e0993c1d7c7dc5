"""`python -m tools.try_catalogue`: the markets of a catalogue that was exported as tables."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from penstock_systems.standins.appstore import Catalogue
from penstock_systems.standins.appstore.texts import description
from tools.try_catalogue import Line, Listed, Search, catalogue, lines_of, main, measured, ranking

DAY = 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fake store, with two files of descriptions."""
    made, store = tmp_path_factory.mktemp("catalogue"), Catalogue(apps=900, markets=8, seed=3)
    apps = [store.app(index) for index in range(store.apps)]
    with (made / "AppleStore.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "track_name", "rating_count_tot", "user_rating", "prime_genre"])
        rows.writerows([app.track_id, app.title, app.rating_count(DAY), 4.0, app.genres[0]] for app in apps)
    for part in (0, 1):
        with (made / f"store_description{part}.csv").open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["id", "app_desc"])
            rows.writerows([app.track_id, description(app)] for app in apps[part::2])
    return made


def test_markets_are_listed_with_their_leaders_and_measured(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(folder), "--first", "5"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "900 apps"
    assert [line.split()[0] for line in told[1:6]] == ["1", "2", "3", "4", "5"]
    assert told[-1].startswith("Leaders among the 300 most rated apps: ")


def test_a_market_of_a_giant_is_measured_as_one(folder: Path) -> None:
    listed = catalogue(folder)
    assert all(app.text for app in listed)
    lines = lines_of(ranking(listed), {app.id: app for app in listed})
    assert max(lines, key=lambda line: line.total_ratings).size_rank == 1
    assert min(lines, key=lambda line: line.total_ratings).size_rank > len(lines) / 2
    most_rated = max(lines, key=lambda line: line.leader_ratings)
    assert most_rated.leader == max(listed, key=lambda app: app.ratings).title
    assert most_rated.leader in measured([most_rated], lines, listed)
    assert lines[0].leader_ratings < most_rated.leader_ratings / 10


def test_a_search_finds_what_holds_all_words_titles_first() -> None:
    search = Search(
        [
            Listed(1, "Rain sounds", "Health", 10, 4.0, ""),
            Listed(2, "Sleep", "Health", 900, 4.0, "With the sounds of rain."),
            Listed(3, "Rain radar", "Weather", 9_000, 4.0, "Where it rains."),
        ]
    )
    assert search.ranked("rain sounds") == [0, 1]
    assert search.ranked("radar") == [2]
    assert search.ranked("nothing of it") == []


def test_the_least_median_leader_is_of_ten_large_markets_and_five_of_any_size() -> None:
    large = [line(ratings=9_000 + at, total=90_000, rank=at) for at in range(1, 13)]
    small = [line(ratings=10 * at, total=100, rank=12 + at) for at in range(1, 13)]
    apps = [Listed(at, f"App {at}", "Games", at, 4.0, "") for at in range(1, 301)]
    told = measured([*large[2:], *small[:5]], [*large, *small], apps)
    assert "Median leader: 9,005 ratings" in told
    assert "in the upper half by ratings, with 8 apps or more: 10 of 15" in told.lower()
    assert "With 10 such markets, no choice of 15 has a median leader of fewer than 9,003 ratings." in told


def line(*, ratings: int, total: int, rank: int) -> Line:
    return Line("Market", 50.0, 8, "Leader", ratings, total, rank, (), None)
