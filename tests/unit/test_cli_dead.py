"""`penstock dead`: what died is found, understood, mended and sent back, or put away, and nothing twice."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.reference import load
from penstock.model.envelope import Encoded
from penstock.queues import letters
from tests.unit.cli import SHOP, Terminal, shop_in
from tests.unit.test_cli_queues import sent, typed, worked

BOTH_STORES = True

COLUMNS = [
    "id",
    "event_id",
    "queue",
    "dlq",
    "type",
    "source",
    "payload",
    "attempts",
    "failed_at",
    "replayed_at",
    "resolution",
    "correlation_id",
    "causation_id",
    "envelope",
    "error_class",
    "error_message",
    "first_failed_at",
    "replay_count",
    "reason",
]
HOSTILE = SHOP.replace(
    '"nobody sells that"', '"nobody [bold]sells[/]\\n\\x1b[31m that, token=hunter2hunter2 " + "x" * 300'
)
REASON = ["--reason", "test data"]


@pytest.fixture
def three(shop: Path) -> Path:
    """Three sales of something cursed have died."""
    worked("cursed", "cursed", "cursed")
    return shop


def listed(terminal: Terminal, *more: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = terminal("dead", "list", *more, "--json").told["dead"]
    return found


def numbers(terminal: Terminal, *more: str) -> list[int]:
    return [letter["id"] for letter in listed(terminal, *more)]


def ready(terminal: Terminal) -> int:
    return int(terminal("queues", "show", "sales", "--json").told["ready"])


# -- looking ----------------------------------------------------------------------------------------------


@pytest.mark.spec("A3-04")
def test_dead_letters_are_listed_with_the_agreed_columns(terminal: Terminal, three: Path) -> None:
    said = terminal("dead", "list", "shop.py", "--json")

    assert list(said.told) == ["dead"]
    letter = said.told["dead"][0]
    assert list(letter)[: len(COLUMNS)] == COLUMNS
    assert (letter["id"], letter["queue"], letter["dlq"], letter["type"]) == (1, "sales", "sales-dlq", "sale")
    assert (letter["source"], letter["payload"], letter["attempts"]) == ("shop", '{"item":"cursed"}', 1)
    assert (letter["reason"], letter["error_class"], letter["resolution"]) == ("permanent", "Gone", None)
    assert letter["error_message"] == "nobody sells that"
    assert letter["envelope"]["event_id"] == letter["event_id"]
    assert numbers(terminal) == [1, 2, 3]


@pytest.mark.spec("A3-04")
@pytest.mark.parametrize("body, payload", [(b"not json", "not json"), (b"\xff\x00", "X'FF00'")])
def test_a_body_that_is_no_json_is_reported_without_error(
    terminal: Terminal, shop: Path, body: bytes, payload: str
) -> None:
    app = sent()

    async def send() -> None:
        async with app, app.unit():
            module = sys.modules[app.queues["sales"].handlers["sale"][0].function.__module__]
            module.sales.send(Encoded("sale", body))

    asyncio.run(send())
    asyncio.run(app.run(until_idle=True))

    (letter,) = listed(terminal)
    assert (letter["payload"], letter["reason"]) == (payload, "malformed")
    assert payload in terminal("dead", "show", "1").out


@pytest.mark.spec("A3-08")
@pytest.mark.parametrize(
    "given, found",
    [
        (["--queue", "sales"], 3),
        (["--queue", "sales-dlq"], 3),
        (["--queue", "other"], 0),
        (["--type", "sale", "--source", "shop", "--reason", "permanent"], 3),
        (["--died-of", "exhausted"], 0),
        (["--since", "1h"], 3),
        (["--until", "1h"], 0),
        (["--since", "2020-01-01", "--until", "2020-01-02T09:30"], 0),
        (["--text", "NOBODY"], 3),
        (["--text", "cursed"], 3),
        (["--text", "blessed"], 0),
        (["--limit", "2"], 2),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else str(each),
)
def test_letters_are_chosen_by_what_they_have_in_common(
    terminal: Terminal, three: Path, given: list[str], found: int
) -> None:
    assert len(numbers(terminal, *given)) == found
    if "--limit" not in given:
        groups = terminal("dead", "groups", *given, "--json").told["groups"]
        assert [group["letters"] for group in groups] == ([found] if found else [])


def test_a_time_that_is_none_ends_with_2(terminal: Terminal, three: Path) -> None:
    said = terminal("dead", "list", "--since", "yesterday")

    assert said.code == 2
    assert "'yesterday' is not a time" in said.err


def test_causes_are_counted(terminal: Terminal, three: Path) -> None:
    (group,) = terminal("dead", "groups", "--json").told["groups"]

    assert (group["queue"], group["type"], group["reason"], group["error_class"]) == (
        "sales",
        "sale",
        "permanent",
        "Gone",
    )
    assert (group["letters"], group["examples"]) == (3, ["nobody sells that (3)"])
    assert "Gone: nobody sells that" in terminal("dead", "groups").words


def test_one_letter_is_shown_by_its_number_or_by_its_message(terminal: Terminal, three: Path) -> None:
    letter = listed(terminal)[1]

    for id in ("2", "#2", letter["event_id"], letter["event_id"].replace("-", "")):
        assert terminal("dead", "show", id, "--json").told == letter
    said = terminal("dead", "show", "2")
    assert '"item": "cursed"' in said.out
    assert "Gone: nobody sells that" in said.out
    assert 'shop.py", line 17, in ' in said.out


def test_where_nothing_died_it_says_so(terminal: Terminal, shop: Path) -> None:
    worked("lamp")

    assert terminal("dead", "list").out == "There are no dead letters.\n"
    assert terminal("dead", "list", "--queue", "sales").out == "No dead letters match.\n"
    assert terminal("dead", "list", "--json").told == {"dead": []}


@pytest.mark.fault("F48")
@pytest.mark.spec("A12-06")
def test_hostile_text_moves_no_cursor_and_tells_no_secret(terminal: Terminal, empty_folder: Path) -> None:
    shop_in(empty_folder, HOSTILE)
    worked("cursed")

    for command in (["list"], ["groups"], ["show", "1"]):
        for more in ([], ["--json"]):
            said = terminal("dead", *command, *more)
            assert "hunter2" not in said.out
            assert "\x1b" not in said.out
    assert "[bold]sells[/]" in terminal("dead", "show", "1").words


@pytest.mark.parametrize(
    "command",
    [
        ["show", "9"],
        ["edit", "9", "--body", "{}"],
        ["replay", "9"],
        ["discard", "9", *REASON],
        ["fixed", "9", "--note", "x"],
    ],
    ids=lambda given: given[0],
)
def test_a_letter_that_is_not_there_ends_with_4(terminal: Terminal, three: Path, command: list[str]) -> None:
    said = terminal("dead", *command, "--json")

    assert (said.code, said.out, said.error["code"]) == (4, "", "no_such_letter")
    assert "There is no dead letter 9" in said.error["message"]


@pytest.mark.parametrize(
    "command",
    [
        ["show", "first"],
        ["edit", "first", "--body", "{}"],
        ["replay"],
        ["replay", "first", "2"],
        ["replay", "1", "--queue", "sales"],
        ["replay", "1", "--all"],
        ["replay", "1", "--rate", "0"],
        ["discard", *REASON],
        ["discard", "1"],
        ["discard", "1", "--reason", " "],
        ["fixed", "--note", "x"],
        ["fixed", "1"],
    ],
    ids=" ".join,
)
def test_a_wrong_call_ends_with_2_and_changes_nothing(terminal: Terminal, three: Path, command: list[str]) -> None:
    said = terminal("dead", *command)

    assert (said.code, said.out) == (2, "")
    assert numbers(terminal) == [1, 2, 3]


# -- replay -----------------------------------------------------------------------------------------------


@pytest.mark.spec("A3-06")
def test_ten_go_back_at_a_time_oldest_first_until_none_is_left(terminal: Terminal, shop: Path) -> None:
    worked(*["cursed"] * 12)

    first = terminal("dead", "replay", "--queue", "sales", "--json").told
    assert (first["replayed"], first["left"]) == (10, 2)
    assert numbers(terminal) == [11, 12]
    assert ready(terminal) == 10
    assert [terminal("dead", "replay", "--queue", "sales", "--json").told["replayed"] for _ in range(2)] == [2, 0]


def test_all_means_all_and_a_limit_is_kept(terminal: Terminal, shop: Path) -> None:
    worked(*["cursed"] * 25)

    assert terminal("dead", "replay", "--all", "--limit", "3", "shop.py").words == (
        "Replayed 3 dead letters. 22 more match: repeat the command, or add --limit or --all. See how they fare with: "
        "penstock dead list"
    )
    assert "Replayed 22 dead letters." in terminal("dead", "replay", "--all").words


@pytest.mark.spec("A3-08")
def test_named_letters_go_back_once(terminal: Terminal, three: Path) -> None:
    assert terminal("dead", "replay", "1", "3", "shop.db", "--json").told["replayed"] == 2
    assert numbers(terminal) == [2]
    assert terminal("dead", "replay", "1").out == "Replayed 0 dead letters. 1 had been resolved before.\n"
    assert ready(terminal) == 2
    assert [letter["resolution"] for letter in listed(terminal, "--all")] == ["replayed", None, "replayed"]


def test_a_rate_spreads_them_over_time(terminal: Terminal, three: Path) -> None:
    terminal("dead", "replay", "--all", "--rate", "0.01")

    told = terminal("queues", "show", "sales", "--json").told
    assert (told["ready"], told["delayed"]) == (1, 2)


def test_what_went_back_three_times_stays_unless_forced_and_blocks_no_other(terminal: Terminal, shop: Path) -> None:
    worked("cursed")
    for _ in range(3):
        terminal("dead", "replay", "--all")
        worked()
    (worn,) = numbers(terminal)
    worked("cursed")

    told = terminal("dead", "replay", "--all", "--limit", "1", "--json").told
    assert (told["replayed"], told["worn_out"]) == (1, [worn])
    assert f"{worn}. Add --force to replay them." in terminal("dead", "replay", str(worn)).words
    assert terminal("dead", "replay", str(worn), "--force", "--json").told["replayed"] == 1


@contextmanager
def a_worker() -> Iterator[None]:
    """The app of `shop.py` at work in a thread."""
    app = load("shop.py")
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=(app.run(),))
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(app.stop)
        thread.join()
        loop.close()


def test_a_canary_that_dies_keeps_the_others_and_ends_with_1(terminal: Terminal, three: Path) -> None:
    with a_worker():
        said = terminal("dead", "replay", "--all", "--canary", "--json")

    assert (said.code, said.out, said.error["code"]) == (1, "", "canary_died")
    assert "died again (permanent: Gone: nobody sells that)" in said.error["message"]
    assert numbers(terminal) == [2, 3, 4]


def test_a_canary_that_lives_lets_the_others_follow(terminal: Terminal, three: Path) -> None:
    for number in ("1", "2", "3"):
        terminal("dead", "edit", number, "shop.py", "--body", '{"item": "lamp"}')

    with a_worker():
        said = terminal("dead", "replay", "--all", "--canary", "--json")

    assert (said.code, said.told["replayed"]) == (0, 3)
    assert numbers(terminal) == []


def test_without_a_worker_a_canary_gives_up(terminal: Terminal, three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letters, "CANARY_SECONDS", 0.3)

    said = terminal("dead", "replay", "--all", "--canary")

    assert said.code == 1
    assert "No process serves queue sales" in said.err
    assert numbers(terminal) == [2, 3]


# -- edit -------------------------------------------------------------------------------------------------


def test_an_edited_letter_goes_back_with_its_new_payload(
    terminal: Terminal, three: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert terminal("dead", "edit", "1", "shop.py", "--body", '{"item": "lamp"}', "--json").told["checked"]
    typed(monkeypatch, '{"item": "sofa"}\n', terminal=False)
    assert "not checked" in terminal("dead", "edit", "2", "--body", "-").out

    terminal("dead", "replay", "1", "2")
    worked()

    assert terminal("queues", "show", "sales", "--json").told["acked"] == 2
    assert [letter["payload"] for letter in listed(terminal, "--all")][:2] == ['{"item": "lamp"}', '{"item": "sofa"}']


@pytest.mark.parametrize(
    "body, told", [('{"item": 3}', "The payload is not a valid sale: Expected `str`"), ("{", "JSON is not valid")]
)
def test_a_payload_that_does_not_fit_leaves_the_letter_as_it_is(
    terminal: Terminal, three: Path, body: str, told: str
) -> None:
    said = terminal("dead", "edit", "1", "shop.py", "--body", body)

    assert (said.code, said.out) == (2, "")
    assert told in said.err
    assert listed(terminal)[0]["payload"] == '{"item":"cursed"}'


def test_what_was_dealt_with_cannot_be_edited(terminal: Terminal, three: Path) -> None:
    terminal("dead", "discard", "1", *REASON)

    said = terminal("dead", "edit", "1", "--body", "{}")

    assert said.code == 4
    assert "was already discarded" in said.err


def test_without_a_body_an_editor_opens_and_may_open_again(
    terminal: Terminal, three: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    written = ['{"item": 7}', '{"item": "lamp"}']

    def editor(text: str, **_: object) -> str:
        shown.append(text)
        return written.pop(0)

    monkeypatch.setattr("click.edit", editor)
    typed(monkeypatch, "y\n", terminal=True)

    said = terminal("dead", "edit", "1", "shop.py")

    assert said.code == 0
    assert shown == ['{\n  "item": "cursed"\n}', '{"item": 7}']
    assert "The payload is not a valid sale" in said.err
    assert listed(terminal)[0]["payload"] == '{"item": "lamp"}'


def test_an_editor_that_was_left_changes_nothing(
    terminal: Terminal, three: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("click.edit", lambda text, **_: None)
    typed(monkeypatch, "", terminal=True)

    assert terminal("dead", "edit", "1").code == 2
    assert listed(terminal)[0]["edited_at"] is None


def test_without_a_terminal_there_is_no_editor(terminal: Terminal, three: Path) -> None:
    said = terminal("dead", "edit", "1")

    assert said.code == 2
    assert "There is no terminal to open an editor in" in said.err


# -- discard, fixed ---------------------------------------------------------------------------------------


@pytest.mark.spec("A3-08")
def test_what_was_put_away_is_never_replayed(terminal: Terminal, three: Path) -> None:
    assert terminal("dead", "discard", "1", *REASON, "--json").told == {"discarded": 1}
    assert terminal("dead", "fixed", "2", "shop.py", "--note", "by hand", "--json").told == {"fixed": 1}

    assert terminal("dead", "replay", "--all", "--json").told["replayed"] == 1
    assert terminal("dead", "replay", "1", "2", "--json").told["replayed"] == 0
    assert [(letter["resolution"], letter["note"]) for letter in listed(terminal, "--all")] == [
        ("discarded", "test data"),
        ("fixed", "by hand"),
        ("replayed", None),
    ]


def test_more_than_one_is_put_away_only_after_a_yes(
    terminal: Terminal, three: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for which in (["1", "2"], ["--queue", "sales"]):
        said = terminal("dead", "discard", *which, *REASON)
        assert said.code == 2
        assert "dead letters, and there is no terminal to ask on. Add --yes" in said.err
    typed(monkeypatch, "n\n", terminal=True)
    assert terminal("dead", "discard", "--queue", "sales", *REASON).code == 130
    assert numbers(terminal) == [1, 2, 3]

    assert terminal("dead", "discard", "--died-of", "permanent", *REASON, "--limit", "2", "--yes").code == 0
    assert numbers(terminal) == [3]
