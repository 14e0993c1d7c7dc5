"""Good markets lend priority once; it never exceeds its ceiling, keeps the order, and is taken back slowly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock_systems.appstore.cluster.feedback import APP, KEYWORD, Boost, Change, Held, lent
from penstock_systems.appstore.cluster.naming import NAME_CHARACTERS_MAX, NAMELESS, names
from penstock_systems.appstore.cluster.scoring import competitiveness_of, demand_of, score

pytestmark = pytest.mark.slow("postgres")


class Subject:
    """Something with a priority, over many runs."""

    def __init__(self, priority: int, kind: Boost = APP) -> None:
        self.priority, self.kind = priority, kind
        self.held: Held | None = None

    def run(self, *, good: bool = True, times: int = 1) -> int:
        for _ in range(times):
            change = lent(self.priority, self.held, good=good, kind=self.kind)
            if change is not None:
                self.priority, self.held = change.priority, change.held
        return self.priority


@pytest.mark.spec("B5-06", "G2-29")
@pytest.mark.parametrize("kind, before, after", [(APP, 95, 100), (APP, 0, 10), (KEYWORD, 0, 5), (KEYWORD, 48, 50)])
def test_a_boost_stops_at_its_ceiling(kind: Boost, before: int, after: int) -> None:
    assert Subject(before, kind).run() == after


def test_what_an_operator_set_above_the_ceiling_stays() -> None:
    person = Subject(80, KEYWORD)
    assert person.run(times=3) == 80
    assert person.run(good=False, times=9) == 80


@pytest.mark.spec("B5-06", "G2-29")
def test_twenty_runs_keep_the_order_and_saturate_nothing() -> None:
    apps = [Subject(priority) for priority in range(0, 90, 5)]
    after = [app.run(times=20) for app in apps]
    assert after == [priority + 10 for priority in range(0, 90, 5)]


@pytest.mark.spec("G2-29")
def test_a_boost_is_taken_back_by_halves_until_nothing_is_left() -> None:
    app = Subject(3)
    assert app.run(times=5) == 13
    assert [app.run(good=False) for _ in range(5)] == [8, 5, 4, 3, 3]
    assert app.held is None
    assert lent(3, None, good=False, kind=APP) is None


def test_what_others_add_or_set_meanwhile_is_theirs() -> None:
    app = Subject(0)
    app.run()
    app.priority += 20
    assert app.run() == 30
    assert app.run(good=False, times=9) == 20


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 120) | st.none()), max_size=30), st.integers(0, 120))
def test_whatever_happens_a_subject_ends_where_others_left_it(
    runs: list[tuple[bool, int | None]], priority: int
) -> None:
    """What others do between runs is a difference: all of them added up is what is left when nothing is lent."""
    app, own = Subject(priority), priority
    for good, meanwhile in runs:
        if meanwhile is not None:
            own += meanwhile - app.priority
            app.priority = meanwhile
        app.run(good=good)
        assert app.priority <= max(own, APP.ceiling)
    assert app.run(good=False, times=10) == own


def test_nothing_is_written_twice() -> None:
    assert lent(0, None, good=True, kind=APP) == Change(10, Held(0, 10.0))
    assert lent(10, Held(0, 10.0), good=True, kind=APP) is None


# -- scores --------------------------------------------------------------------------------------------------


@pytest.mark.spec("B5-03")
def test_the_score_of_a_market_is_made_of_demand_weakness_and_dispersion() -> None:
    golden = score([80.0, 60.0], [(50.0, 1.0), (20.0, 0.5)], [100, 100])
    assert (golden.demand, golden.competitiveness, golden.fragmentation) == (70.0, 40.0, 50.0)
    assert golden.opportunity == pytest.approx(0.4 * 70 + 0.35 * 60 + 0.25 * 50)


def test_a_market_is_as_wanted_as_its_ten_most_wanted_keywords() -> None:
    assert demand_of([90.0] * 10 + [0.0] * 500) == 90.0
    assert demand_of([]) == 0.0


def test_an_app_counts_as_much_as_it_is_seen() -> None:
    assert competitiveness_of([(100.0, 1.0), (0.0, 0.0)]) == 100.0
    assert competitiveness_of([]) == 0.0


# -- names ---------------------------------------------------------------------------------------------------


@pytest.mark.spec("B8-T16")
def test_a_name_is_made_of_what_is_heavy_here_and_rare_elsewhere() -> None:
    sleep = {"sleep tracker": 0.9, "sleep": 1.0, "snore tracker": 0.7, "snore": 0.6, "white noise": 0.5}
    money = {"budget tracker": 0.9, "budget": 1.0, "expense tracker": 0.6}
    walking = {"step tracker": 1.0, "step counter": 0.8}
    first, second, third = names([sleep, money, walking])
    assert first.startswith("Sleep")
    assert "snore" in first
    assert second.startswith("Budget")
    assert third.startswith("Step counter")


def test_no_word_is_said_twice_in_a_name() -> None:
    (name,) = names([{"sleep": 1.0, "sleep sounds": 0.9, "sounds": 0.8, "rain": 0.7}])
    assert name == "Sleep, sounds, rain"


def test_a_brand_is_in_no_name_unless_there_is_nothing_else() -> None:
    market = {"zumba": 1.0, "zumba sleep": 0.9, "sleep": 0.5, "noise": 0.4}
    assert names([market], common={"sleep", "noise"}) == ["Sleep, noise"]
    assert names([market])[0].startswith("Zumba")
    assert names([{"zumba": 1.0, "noka": 0.9}], common={"sleep"}) == ["Zumba, noka"]
    assert names([{"zumba": 1.0, "\u200f": 0.9}], common={"\u200f"}) == ["Zumba"], (
        "what cannot be shown is nothing else"
    )


def test_a_name_does_not_depend_on_the_order_in_which_keywords_come() -> None:
    market = {"b": 1.0, "a": 1.0, "c": 1.0, "d": 1.0}
    assert names([market]) == names([dict(reversed(market.items()))]) == ["A, b, c"]


@pytest.mark.parametrize(
    "hostile, shown",
    [("abc\u202edcba", "Abcdcba"), ("bell\x07\x1b[31m", "Bell[31m"), ("عادات يومية", "عادات يومية")],
)
def test_a_name_holds_nothing_that_turns_or_colours_what_stands_beside_it(hostile: str, shown: str) -> None:
    assert names([{hostile: 1.0}]) == [shown]


def test_a_market_whose_keywords_cannot_be_shown_has_a_name_all_the_same() -> None:
    assert names([{"\u2066": 1.0, "\u200f": 0.5, "W" * 500: 0.9}, {}]) == ["Unnamed market", "Unnamed market"]
    assert NAMELESS == "unnamed market"


@given(st.lists(st.dictionaries(st.text(max_size=70), st.floats(0, 1), max_size=12), max_size=5))
def test_every_name_is_short_and_can_be_printed(markets: list[dict[str, float]]) -> None:
    for name in names(markets):
        assert 0 < len(name) <= NAME_CHARACTERS_MAX + 8  # a letter may become two in upper case
        assert "\n" not in name
        assert "\x1b" not in name
