"""Five processes apart, in real time, killed at random: nothing is posted twice, published twice or left without a reason."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from penstock_systems.standins.brave import Search
from tests.extent import patient
from tests.systems.brand.processes import BRAIN, BRANDS, EYES, HANDS, MOUTH, SERVICES, running, wait_for

KILLS = int(os.environ.get("PENSTOCK_KILLS", "60"))
UNFINISHED = 8  # keywords that are asked for and have no end yet, at any time: every kill hits work
PAUSE_SECONDS = 2.0  # at most, between two kills
LOST = 0.12  # the share of the posts that are made and not answered in time
DRAIN_SECONDS = 600.0
CRASHED = "the worker process died while it ran this"  # of a dead letter whose handler was killed again and again
CRASHED_MOST = 0.1  # of the keywords


@pytest.mark.slow
@pytest.mark.spec("D-22", "D-20", "D-15")
def test_kills_of_all_services_double_no_post_and_no_page_and_leave_nothing_behind(
    tmp_path: Path, kept_on: str, seed: int, note: Callable[[str], None]
) -> None:
    began, chance, killed = time.monotonic(), Random(seed), Counter[str]()
    with running(tmp_path, on_postgres=kept_on == "postgres", lost=LOST) as town:
        asked: list[str] = []
        ends = time.monotonic() + patient(60 + 10 * KILLS)
        while killed.total() < KILLS:
            assert time.monotonic() < ends, f"only {killed} are killed: {town.errors()}"
            if town.unfinished() < UNFINISHED:
                keyword, slug = f"topic {seed} {len(asked)}", sorted(BRANDS)[len(asked) % len(BRANDS)]
                asked += [keyword] if town.research(slug, keyword) else []
            town.review()
            time.sleep(chance.uniform(0.0, PAUSE_SECONDS))
            up = [service for service in SERVICES if town.is_served(service)]
            if up and town.kill(service := chance.choice(up)):
                killed[service] += 1

        def is_done() -> bool:
            town.review()
            return not town.unfinished() and not town.backlog()

        try:
            wait_for(is_done, DRAIN_SECONDS)
        finally:
            left = {(service, queue, id): town.why(service, id) for service, queue, id in town.backlog()[:20]}
            errors = town.errors()
        posts = town.rows(HANDS, "select content_id, platform, state, error from sg_posts")
        contents = town.rows(BRAIN, "select id, status from sm_content")
        published = {
            slug: len(town.rows(BRAIN, f"select id from sm_content where status = 'published' and id like '{slug}-%'"))
            for slug in BRANDS
        }
        letters = {service: len(town.rows(service, "select id from penstock_dead")) for service in (EYES, MOUTH)}
        errored = dict(town.errored())
        failures = town.rows(BRAIN, "select kind, keyword, reason from sm_failures")
    arrivals, search = town.arrivals, Search(time.time)
    note(
        f"{killed.total()} kills of {dict(killed)} on {kept_on}, seed {seed}: {sum(published.values())} articles published, "
        f"{len(arrivals.all)} arrivals, {len(arrivals.doubled())} doubled, "
        f"{len(failures) + len(errored)} failures with a reason, "
        f"{time.monotonic() - began:.0f} s"
    )

    assert not left, (left, errors)
    assert arrivals.doubled() == []
    # A keyword fails if the search knows nothing of it, or if four kills in a row hit its research: the reason says which.
    unknown = {keyword for keyword in asked if "web" not in search.results(keyword, 10, 0)}
    researched = [(keyword, reason) for kind, keyword, reason in failures if kind == "research"]
    killed_often = {keyword for keyword, reason in researched if reason == CRASHED}
    assert {keyword for keyword, _ in researched} == unknown | killed_often, failures
    assert all("found 0 pages" in reason or reason == CRASHED for _, reason in researched)
    # So a target may not get an article that the others have, and an article's run may end.
    unplaced = [reason for kind, _, reason in failures if kind == "content"]
    assert all(reason.endswith(f": {CRASHED}") for reason in unplaced), unplaced
    assert letters == {EYES: len(researched), MOUTH: len(unplaced)}
    assert all(CRASHED in error for error in errored.values()), errored
    assert len(killed_often) + len(unplaced) + len(errored) <= CRASHED_MOST * len(asked), (failures, errored)
    finished = Counter(status for id, status in contents if id not in errored)
    assert finished.total() == len(asked) - len(researched) - len(errored), contents
    assert finished["published"] == sum(published.values()) >= finished.total() - len(unplaced), contents
    assert finished.keys() <= {"published", "failed"}
    assert len(asked) >= KILLS / 5
    assert finished["published"] - len(unplaced) <= len(town.pages()) <= finished.total()
    assert {state for _, _, state, _ in posts} == {"posted"}, posts
    servers = Counter(each["server"] for each in arrivals.all)
    expected = Counter(server for slug, count in published.items() for server in arrived_of(slug) for _ in range(count))
    assert (expected - servers).total() + (servers - expected).total() <= len(unplaced), (servers, expected)


def arrived_of(slug: str) -> list[str]:
    """The fake servers that get each article of a brand."""
    return [*BRANDS[slug]["social"], *(["ghost"] if "ghost" in BRANDS[slug]["targets"] else [])]
