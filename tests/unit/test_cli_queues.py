"""`penstock queues`: every queue in the agreed shape, and levers that do what they say or say why not."""

from __future__ import annotations

import asyncio
import io
import shutil
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from penstock.cli.dead import dead
from penstock.cli.queues import queues
from penstock.cli.reference import load
from penstock.model.errors import BadParameter
from penstock.queues.admin import no_such_queue, parallel_of, rate_of
from tests.unit.cli import SHOP, Terminal, shop_in

BOTH_STORES = True

SHAPE = [
    "name",
    "sent",
    "acked",
    "ready",
    "leased",
    "delayed",
    "dead",
    "purged",
    "expired",
    "oldest_age_seconds",
    "paused",
]
MORE = """

class Word(ps.Event, type="word"):
    text: str


class Phrase(ps.Event, type="phrase"):
    text: str


spoken = app.queue("spoken", Word | Phrase)
written = app.queue("written", str)
anything = app.queue("anything")
"""


@pytest.fixture
def market(empty_folder: Path) -> Path:
    """The current folder with the shop's app, four queues, and a database in which nothing has been sent."""
    shop_in(empty_folder, SHOP + MORE)
    asyncio.run(_opened_once(load("shop.py")))
    return empty_folder


async def _opened_once(app: Any) -> None:
    async with app:
        pass


def sent(*items: str, delay: float = 0.0) -> Any:
    app = load("shop.py")
    module = sys.modules[app.queues["sales"].handlers["sale"][0].function.__module__]
    asyncio.run(module.send(*items, delay=delay))
    return app


def worked(*items: str) -> None:
    asyncio.run(sent(*items).run(until_idle=True))


def state(terminal: Terminal, name: str) -> dict[str, Any]:
    found: dict[str, Any] = terminal("queues", "show", name, "shop.db", "--json").told
    return found


def typed(monkeypatch: pytest.MonkeyPatch, text: str, *, terminal: bool) -> None:
    """What comes from stdin, which is a terminal or not."""
    stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
    stdin.isatty = lambda: terminal  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stdin", stdin)


# -- help -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "noun, verb", [(noun.name, verb) for noun in (queues, dead) for verb in noun.commands], ids=lambda each: str(each)
)
def test_the_help_of_every_verb_shows_an_example_and_json(terminal: Terminal, noun: str, verb: str) -> None:
    said = terminal(noun, verb, "--help")

    assert said.code == 0
    assert f"Example:\n    penstock {noun} {verb}" in said.out
    assert "--json" in said.out


@pytest.mark.parametrize("noun", [queues, dead], ids=lambda each: str(each.name))
def test_a_noun_alone_says_which_verbs_it_has(terminal: Terminal, noun: click.Group) -> None:
    assert noun.name is not None
    assert terminal(noun.name).code == 0
    for verb in noun.commands:
        assert f"\n  {verb}" in terminal(noun.name).out
    assert terminal(noun.name, "--json").told == {"commands": list(noun.commands)}


# -- looking ----------------------------------------------------------------------------------------------


@pytest.mark.spec("A1-29")
def test_every_queue_is_listed_in_the_agreed_shape(terminal: Terminal, shop: Path) -> None:
    worked("lamp", "chair", "cursed")
    sent("sofa", delay=600)
    sent("desk")

    said = terminal("queues", "list", "--json")

    assert said.code == 0
    assert list(said.told) == ["queues"]
    (queue,) = said.told["queues"]
    assert sorted(queue) == sorted(SHAPE)
    assert 0 <= queue.pop("oldest_age_seconds") < 60
    assert queue == {
        "name": "sales",
        "sent": 5,
        "acked": 2,
        "ready": 1,
        "leased": 0,
        "delayed": 1,
        "dead": 1,
        "purged": 0,
        "expired": 0,
        "paused": False,
    }
    assert "sales" in terminal("queues", "list").out


@pytest.mark.spec("A1-29")
def test_one_queue_is_shown_with_depth_settings_and_what_was_tuned(terminal: Terminal, shop: Path) -> None:
    worked("cursed")
    sent("lamp")
    terminal("queues", "tune", "sales", "--rate", "2.5")

    told = state(terminal, "sales")
    assert (told["ready"], told["dead"], told["leased"]) == (1, 1, 0)
    assert told["settings"]["retries"] == 0
    assert told["tuned"] == {"parallel": None, "rate": 2.5}
    assert told["accepts"] == ["sale"]
    assert told["served_by"] == []

    said = terminal("queues", "show", "sales").words
    assert "2.5 a second (tuned; the app declares no limit)" in said
    assert "No process serves this queue" in said
    assert "penstock dead groups --queue sales" in said


@pytest.mark.only_on("sqlite")
def test_looking_leaves_no_trace(terminal: Terminal, shop: Path) -> None:
    worked("lamp", "cursed")
    shutil.copy("shop.db", "before.db")

    for command in (["queues", "list"], ["queues", "show", "sales"], ["dead", "list"], ["dead", "groups"]):
        assert terminal(*command, "shop.db").code == 0
    assert terminal("dead", "show", "1", "shop.db").code == 0

    assert (shop / "shop.db").read_bytes() == (shop / "before.db").read_bytes()


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal(
    terminal: Terminal, shop: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    worked("lamp", "cursed")
    monkeypatch.setenv("COLUMNS", str(width))

    for command in (["queues", "list"], ["queues", "show", "sales"], ["dead", "list"], ["dead", "groups"]):
        said = terminal(*command)

        assert said.code == 0
        assert max(map(len, said.out.splitlines())) <= width
        assert "…" not in said.out


# -- pause, resume, purge, tune ---------------------------------------------------------------------------


@pytest.mark.spec("A1-29")
def test_a_paused_queue_delivers_nothing_until_it_is_resumed(terminal: Terminal, shop: Path) -> None:
    sent("lamp")

    assert terminal("queues", "pause", "sales", "--json").told == {"queue": "sales", "paused": True}
    worked("chair")
    assert (state(terminal, "sales")["paused"], state(terminal, "sales")["ready"]) == (True, 2)
    assert "(paused)" in terminal("queues", "list").out

    assert terminal("queues", "resume", "sales", "shop.py", "--json").told == {"queue": "sales", "paused": False}
    worked()
    assert (state(terminal, "sales")["paused"], state(terminal, "sales")["acked"]) == (False, 2)


@pytest.mark.spec("A1-29")
def test_a_purge_removes_what_waits_and_nothing_else(terminal: Terminal, shop: Path) -> None:
    worked("lamp", "cursed")
    sent("chair", "sofa")
    sent("desk", delay=600)

    assert terminal("queues", "purge", "sales", "--yes", "--json").told == {"queue": "sales", "purged": 3}

    told = state(terminal, "sales")
    assert (told["ready"], told["delayed"], told["purged"], told["dead"], told["acked"]) == (0, 0, 3, 1, 1)


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_without_a_terminal_a_purge_wants_yes(terminal: Terminal, shop: Path, more: list[str]) -> None:
    sent("lamp")

    said = terminal("queues", "purge", "sales", *more)

    assert (said.code, said.out) == (2, "")
    assert "This would purge 1 message of queue sales" in said.err
    assert "--yes" in said.err
    assert state(terminal, "sales")["ready"] == 1


@pytest.mark.parametrize("answer, code, left", [("n\n", 130, 1), ("y\n", 0, 0)])
def test_on_a_terminal_a_purge_asks(
    terminal: Terminal, shop: Path, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, left: int
) -> None:
    sent("lamp")
    typed(monkeypatch, answer, terminal=True)

    said = terminal("queues", "purge", "sales")

    assert said.code == code
    assert "Purge 1 message of queue sales?" in said.err
    assert state(terminal, "sales")["ready"] == left


def test_tuning_one_thing_leaves_the_other_and_auto_gives_it_back(terminal: Terminal, shop: Path) -> None:
    sent("lamp")

    terminal("queues", "tune", "sales", "--parallel", "4")
    told = terminal("queues", "tune", "sales", "--rate", "none", "--json").told
    assert told == {"queue": "sales", "parallel": 4, "rate": 0.0}
    assert state(terminal, "sales")["tuned"] == {"parallel": 4, "rate": 0.0}

    said = terminal("queues", "tune", "sales", "--parallel", "auto", "--rate", "auto")
    assert said.out == "Tuned queue sales: parallel as the app declares, rate as the app declares.\n"
    assert state(terminal, "sales")["tuned"] == {"parallel": None, "rate": None}


@pytest.mark.parametrize(
    "given", [[], ["--parallel", "0"], ["--parallel", "many"], ["--rate", "-1"], ["--rate", "nan"]]
)
def test_what_cannot_be_tuned_ends_with_2_and_changes_nothing(terminal: Terminal, shop: Path, given: list[str]) -> None:
    sent("lamp")

    assert terminal("queues", "tune", "sales", *given).code == 2
    assert state(terminal, "sales")["tuned"] == {"parallel": None, "rate": None}


VERBS = (["show"], ["pause"], ["resume"], ["purge", "--yes"], ["tune", "--rate", "1"], ["send", "--type", "text"])


@pytest.mark.parametrize("verb", VERBS, ids=lambda given: given[0])
def test_a_queue_that_is_not_there_ends_with_4(
    terminal: Terminal, shop: Path, monkeypatch: pytest.MonkeyPatch, verb: list[str]
) -> None:
    sent("lamp")
    typed(monkeypatch, "hello", terminal=False)

    said = terminal("queues", *verb, "nowhere", "--json")

    assert (said.code, said.error["code"]) == (4, "no_such_queue")
    assert "There is no queue 'nowhere'. There are: sales." in said.error["message"]
    letters = terminal("queues", *verb, "sales-dlq", "--json")
    assert (letters.code, letters.error["code"]) == (4, "no_such_queue")
    assert "`penstock dead list --queue sales` shows them" in letters.error["message"]


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize("verb", VERBS, ids=lambda given: given[0])
def test_no_verb_makes_a_database(
    terminal: Terminal, shop: Path, monkeypatch: pytest.MonkeyPatch, verb: list[str]
) -> None:
    typed(monkeypatch, "hello", terminal=False)

    for target in (["--database", "nowhere.db"], ["--database", "shop.db"]):
        said = terminal("queues", *verb, "sales", *target)

        assert said.code == 3
        assert "There is no database" in said.err
    assert not list(shop.glob("*.db*"))


# -- send -------------------------------------------------------------------------------------------------


@pytest.mark.spec("A13-10")
def test_a_message_that_fits_is_sent_and_handled(terminal: Terminal, market: Path) -> None:
    said = terminal("queues", "send", "sales", '{"item": "lamp"}', "shop.py", "--json")

    assert said.code == 0
    assert (said.told["queue"], said.told["duplicate"], said.told["checked"]) == ("sales", False, True)
    worked()
    assert state(terminal, "sales")["acked"] == 1


def test_without_the_app_its_type_is_known_and_its_payload_is_not_checked(terminal: Terminal, market: Path) -> None:
    said = terminal("queues", "send", "sales", '{"item": "lamp"}')

    assert "not checked" in said.out
    worked()
    assert state(terminal, "sales")["acked"] == 1


@pytest.mark.parametrize("target", ["shop.py", "shop.db"])
@pytest.mark.parametrize(
    "name, body, more, told",
    [
        ("sales", "lamp", [], "JSON is not valid at byte 0"),
        ("sales", '{"item": "lamp"}', ["--type", "word"], "'sales' does not accept 'word': it accepts sale"),
        ("sales", '{"type": "word", "payload": {}}', [], "'sales' does not accept 'word': it accepts sale"),
        ("spoken", '{"text": "hi"}', [], "Name the type of the message with --type: it accepts word, phrase"),
        ("anything", "{}", ["--type", "v8"], "cannot be written by hand"),
        ("sales", '{"item": "lamp"}', ["--delay", "soon"], "'soon' is not a duration"),
        ("sales", '{"item": "lamp"}', ["--delay", "99999d"], "A delay of"),
        ("sales", '{"item": "lamp"}', ["--priority", "urgent"], "'urgent' is not one of"),
    ],
)
def test_what_does_not_fit_ends_with_2_and_nothing_is_sent(
    terminal: Terminal, market: Path, target: str, name: str, body: str, more: list[str], told: str
) -> None:
    said = terminal("queues", "send", name, body, target, *more)

    assert (said.code, said.out) == (2, "")
    assert told in said.err
    assert state(terminal, name)["sent"] == 0


def test_a_payload_that_is_none_of_its_class_is_refused_by_the_app(terminal: Terminal, market: Path) -> None:
    said = terminal("queues", "send", "sales", '{"itm": "lamp"}', "shop.py")

    assert said.code == 2
    assert "The body is no sale: Object missing required field `item`" in said.err
    assert state(terminal, "sales")["sent"] == 0


def test_a_body_comes_from_stdin_with_its_delay_and_priority(
    terminal: Terminal, market: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for given in (["-", "shop.py"], []):
        typed(monkeypatch, '{"item": "lamp"}', terminal=False)
        assert terminal("queues", "send", "sales", *given, "--delay", "5m", "--priority", "high").code == 0

    assert state(terminal, "sales")["delayed"] == 2


def test_a_command_without_a_body_does_not_wait_for_one(
    terminal: Terminal, market: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, "", terminal=True)

    said = terminal("queues", "send", "sales")

    assert said.code == 2
    assert "There is no body to send" in said.err


def test_the_same_key_sends_once(terminal: Terminal, market: Path) -> None:
    first = terminal("queues", "send", "written", "call back", "--unique", "monday", "--json").told
    again = terminal("queues", "send", "written", "call back", "shop.py", "--unique", "monday", "--json").told

    assert (first["id"], first["duplicate"]) == (again["id"], False)
    assert again["duplicate"]
    assert state(terminal, "written")["sent"] == 1
    assert "nothing was added" in terminal("queues", "send", "written", "call back", "--unique", "monday").words


@pytest.mark.parametrize("target", ["shop.py", "shop.db"])
def test_one_of_several_types_is_named_or_comes_in_its_envelope(terminal: Terminal, market: Path, target: str) -> None:
    named = terminal("queues", "send", "spoken", '{"text": "hi"}', target, "--type", "phrase")
    wrapped = terminal("queues", "send", "spoken", '{"type": "word", "payload": {"text": "hi"}}', target)

    assert (named.code, wrapped.code) == (0, 0)
    assert state(terminal, "spoken")["ready"] == 2


def test_a_send_to_a_queue_without_types_says_so_and_not_that_no_app_was_named(terminal: Terminal, shop: Path) -> None:
    (shop / "plain.py").write_text('import penstock as ps\n\napp = ps.App("plain")\njobs = app.queue("jobs")\n')
    terminal("migrate", "plain.py")

    said = terminal("queues", "send", "jobs", '{"n": 1}', "plain.py")

    assert said.code == 0
    assert "no app was named" not in said.words
    assert "declares no types" in said.words


def test_a_number_of_handlers_and_a_rate_are_read_from_what_an_operator_writes() -> None:
    assert [parallel_of(text) for text in (None, "auto", "3", "999999")] == [None, None, 3, 999_999]
    assert [rate_of(text) for text in (None, "auto", "none", "2.5")] == [None, None, 0.0, 2.5]
    for text in ("", "-1", "many", "1000000"):
        with pytest.raises(BadParameter, match="Write a number, or auto"):
            parallel_of(text)
    for text in ("", "fast"):
        with pytest.raises(BadParameter, match="Write a number, none or auto"):
            rate_of(text)


def test_the_dead_letters_of_a_queue_are_in_no_queue_and_the_error_says_where() -> None:
    where = "`penstock dead list --queue orders` shows them"

    assert where in no_such_queue("orders-dlq", ["orders"])
    assert where not in no_such_queue("order", ["orders"])
    assert "penstock dead" not in no_such_queue("photos-dlq", ["orders"])
