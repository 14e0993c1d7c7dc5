"""`penstock workflows`: runs in the agreed shape, with or without the app, and levers that do as they say or say why not."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.reference import load
from penstock.cli.workflows import workflows
from tests.unit.cli import SHOP, Terminal, shop_in

BOTH_STORES = True

MORE = """

async def note(item: str) -> dict[str, str]:
    app.db.write("insert into sold (item) values (:item)", item=item)
    return {"item": item}


async def closed() -> None:
    raise ps.Gone("the shop is closed, token=hunter2hunter2")


async def flaky() -> None:
    raise OSError("away")


@app.workflow
async def research(run: ps.Run, cluster_id: int, loud: bool = False) -> str:
    await run.step("gather", note, f"gathered {cluster_id}")
    word = await run.wait_for("approved", str, timeout=3_600)
    await run.step("write", note, word)
    return word.upper() if loud else word


@app.workflow(keep_days=1)
async def sleepy(run: ps.Run) -> None:
    await run.step("first", note, "first")
    await run.sleep(hours=1)
    await run.step("last", note, "last")


@app.workflow
async def doomed(run: ps.Run) -> None:
    await run.step("closed", closed)


@app.workflow
async def trying(run: ps.Run) -> None:
    await run.step("flaky", flaky, retries=ps.Retry(5, 3_600.0, 3_600.0))


@app.workflow
async def patient(run: ps.Run) -> None:
    await run.wait_for("anything")


@app.workflow
async def family(run: ps.Run) -> str:
    return await run.child("kid", research, 1)
"""
AGREED = ["id", "workflow", "state", "steps"]
STEP = ["name", "state", "attempts", "started_at", "ended_at"]
HISTORY = [*STEP, "kind", "position", "due_at", "result", "error", "traceback"]
LISTED = "id workflow state step reason error correlation_id message_id priority created_at ended_at due_at".split()


@pytest.fixture
def lab(empty_folder: Path) -> Path:
    """The current folder with an app in `shop.py` that has workflows, and its database."""
    shop_in(empty_folder, SHOP + MORE)
    worked()
    return empty_folder


def worked() -> None:
    """A worker does what is due."""
    asyncio.run(load("shop.py").run(until_idle=True))


def started(terminal: Terminal, name: str, *more: str, input: str = "{}") -> str:
    said = terminal("workflows", "start", name, "shop.py", "--input", input, *more, "--json")
    assert said.code == 0, said
    worked()
    id: str = said.told["id"]
    return id


def shown(terminal: Terminal, id: str, *more: str) -> dict[str, Any]:
    said = terminal("workflows", "show", id, *more, "--json")
    assert said.code == 0, said
    found: dict[str, Any] = said.told
    return found


def listed(terminal: Terminal, *more: str) -> list[tuple[str, str]]:
    said = terminal("workflows", "list", *more, "--json")
    assert said.code == 0, said
    return [(each["id"], each["state"]) for each in said.told["runs"]]


# -- looking ----------------------------------------------------------------------------------------------


@pytest.mark.spec("A7-08")
def test_a_run_is_shown_in_the_agreed_shape_with_every_step(
    lab: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    id = started(terminal, "research", "--id", "cluster 7", input='{"cluster_id": 7, "loud": true}')

    for target in ((), ("shop.db",), ("shop.py",)):
        found = shown(terminal, id, *target)
        assert list(found)[:4] == AGREED
        assert (found["id"], found["workflow"], found["state"]) == ("cluster 7", "research", "waiting")
        assert [list(step) for step in found["steps"]] == [HISTORY, HISTORY]
        assert [(each["name"], each["kind"], each["state"], each["attempts"]) for each in found["steps"]] == [
            ("gather", "step", "done", 1),
            ("approved", "signal", "waiting", 0),
        ]
        assert found["steps"][0]["result"] == {"item": "gathered 7"}
        assert found["due_at"] >= found["steps"][1]["due_at"] > found["created_at"]
        assert (found["input"], found["result"], found["reason"]) == ({"cluster_id": 7, "loud": True}, None, None)
        assert "approved waits for a signal, which times out at 20" in found["waits_for"]

    said = terminal("workflows", "show", id)
    assert "research cluster 7  waiting" in said.out
    assert '{"cluster_id":7,"loud":true}' in said.words
    assert "gathered 7" in said.words
    assert "waits until" in said.words
    assert "error" not in said.words


def test_runs_are_listed_newest_first_by_workflow_and_by_state(lab: Path, terminal: Terminal) -> None:
    started(terminal, "sleepy", "--id", "a")
    started(terminal, "research", "--id", "b", input='{"cluster_id": 1}')
    started(terminal, "doomed", "--id", "c")

    assert listed(terminal) == [("c", "errored"), ("b", "waiting"), ("a", "waiting")]
    assert listed(terminal, "shop.db", "--limit", "1") == [("c", "errored")]
    assert listed(terminal, "shop.py", "--state", "waiting") == [("b", "waiting"), ("a", "waiting")]
    assert listed(terminal, "research") == [("b", "waiting")]
    assert listed(terminal, "research", "shop.db", "--state", "errored") == []
    (each,) = terminal("workflows", "list", "sleepy", "--json").told["runs"]
    assert list(each) == LISTED
    assert (each["step"], each["due_at"] > each["created_at"], each["error"]) == ("sleep-1", True, None)
    assert "StepFailed: Step 'closed' failed" in terminal("workflows", "list").words
    assert "no such run" in terminal("workflows", "list", "research", "--state", "paused").words


def test_errors_are_reported_without_their_secrets(lab: Path, terminal: Terminal) -> None:
    id = started(terminal, "doomed")

    found = shown(terminal, id)
    assert found["error"] == "StepFailed: Step 'closed' failed: Gone: the shop is closed, token=[redacted]"
    assert found["steps"][0]["state"] == "failed"
    for verb in (("show", id), ("list",)):
        said = terminal("workflows", *verb)
        assert "the shop is closed, token=[redacted]" in said.words
        assert "hunter2" not in said.out


def test_a_run_is_found_by_its_id_by_that_of_its_message_and_among_several_workflows(
    lab: Path, terminal: Terminal
) -> None:
    made = started(terminal, "sleepy")
    assert made[0] == "r"
    message = shown(terminal, made)["message_id"]
    assert message.replace("-", "") == made[1:]
    assert shown(terminal, message)["id"] == made
    started(terminal, "sleepy", "--id", "same")
    started(terminal, "patient", "--id", "same")

    said = terminal("workflows", "show", "same", "--json")
    assert (said.code, said.error["code"]) == (4, "no_such_run")
    assert "patient and sleepy. Name one with --workflow." in said.error["message"]
    assert shown(terminal, "same", "--workflow", "patient")["workflow"] == "patient"
    assert terminal("workflows", "pause", "same", "--workflow", "sleepy", "--json").told["paused"] == ["same"]
    assert terminal("workflows", "show", "same", "--workflow", "research").code == 4


def test_a_child_tells_whose_it_is_and_ends_with_it(lab: Path, terminal: Terminal) -> None:
    started(terminal, "family", "--id", "mother")
    child = shown(terminal, "mother/kid")
    assert (child["workflow"], child["parent"], child["state"]) == ("research", "mother", "waiting")
    assert child["correlation_id"] == shown(terminal, "mother")["correlation_id"]
    assert "kid waits for its child" in shown(terminal, "mother")["waits_for"]
    assert "child of" in terminal("workflows", "show", "mother/kid").words

    terminal("workflows", "terminate", "mother", "shop.db")

    assert listed(terminal) == [("mother/kid", "terminated"), ("mother", "terminated")]


@pytest.mark.parametrize(
    "call", ["show X", "signal X go", "pause X", "resume X", "terminate X", "restart X", "list X", "start X shop.py"]
)
def test_what_is_not_there_is_exit_code_4(lab: Path, terminal: Terminal, call: str) -> None:
    said = terminal("workflows", *call.replace("X", "nobody").split(), "--json")
    assert (said.code, said.out) == (4, "")
    assert said.error["code"] in ("no_such_run", "no_such_workflow")
    assert "nobody" in said.error["message"]


@pytest.mark.only_on("sqlite")
def test_without_a_database_or_workflows_it_says_so(empty_folder: Path, terminal: Terminal) -> None:
    assert terminal("workflows", "list").code == 3
    shop_in(empty_folder)
    worked()
    assert "no such run" in terminal("workflows", "list").words
    assert terminal("workflows", "show", "a").code == 4
    assert terminal("workflows", "resume", "--parked").words == "There is no such run; nothing was changed."
    verbs = ["list", "show", "start", "signal", "pause", "resume", "terminate", "restart"]
    assert terminal("workflows", "--json").told == {"commands": verbs}


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize("verb", workflows.commands)
def test_every_verb_explains_itself_with_an_example(terminal: Terminal, verb: str) -> None:
    assert f"Example:\n    penstock workflows {verb}" in terminal("workflows", verb, "--help").out


# -- starting ---------------------------------------------------------------------------------------------


@pytest.mark.spec("A7-01", "A7-06", "A13-10")
def test_a_run_is_started_once_under_its_id(lab: Path, terminal: Terminal) -> None:
    told = terminal("workflows", "start", "sleepy", "shop.py", "--id", "one", "--priority", "high", "--json").told
    assert told == {"id": "one", "workflow": "sleepy", "started": True, "state": "queued"}
    assert shown(terminal, "one")["priority"] == "high"
    worked()
    told = terminal("workflows", "start", "sleepy", "shop.py", "--id", "one", "--json").told
    assert told == {"id": "one", "workflow": "sleepy", "started": False, "state": "waiting"}
    assert "started before and is waiting" in terminal("workflows", "start", "sleepy", "shop.py", "--id", "one").words
    assert "Started run" in terminal("workflows", "start", "sleepy", "shop.py", "--priority", "low").words
    assert sorted(each["priority"] for each in terminal("workflows", "list", "--json").told["runs"]) == ["high", "low"]


@pytest.mark.parametrize(
    "given, told",
    [
        ("{", "--input is not JSON. The JSON is not valid at byte 1"),
        ("7", "--input is a number; give one object, by parameter name"),
        ("{}", "missing a required argument: 'cluster_id'"),
        ('{"cluster_id": 7, "cluster": 8}', "unexpected keyword argument 'cluster'"),
        ('{"cluster_id": "seven"}', "Expected `int`, got `str`"),
    ],
)
def test_what_a_workflow_cannot_be_given_is_refused_with_what_it_takes(
    lab: Path, terminal: Terminal, given: str, told: str
) -> None:
    said = terminal("workflows", "start", "research", "shop.py", "--input", given, "--json")
    assert (said.code, said.out) == (2, "")
    assert told in said.error["message"]
    assert "cluster_id" in said.error["hint"]
    assert listed(terminal) == []


def test_a_start_needs_the_app_and_takes_no_id_of_the_engines(lab: Path, terminal: Terminal) -> None:
    said = terminal("workflows", "start", "sleepy", "shop.db")
    assert (said.code, "Name the app" in said.words) == (2, True)
    assert terminal("workflows", "start", "sleepy").code == 2
    made = terminal("workflows", "start", "sleepy", "shop.py", "--id", "r" + "0" * 32)
    assert (made.code, "an id of the form that the engine generates" in made.words) == (2, True)


# -- steering ---------------------------------------------------------------------------------------------


@pytest.mark.spec("A7-08")
@pytest.mark.parametrize("target", ["", "shop.db", "shop.py"])
def test_a_run_hears_a_signal_and_goes_on(lab: Path, terminal: Terminal, target: str) -> None:
    id = started(terminal, "research", "--id", "7", input='{"cluster_id": 7}')

    behind = [target] if target else []
    other = terminal("workflows", "signal", id, "other", *behind, "--json").told
    assert other == {"id": "7", "signal": "other", "waits_for": ["approved"]}
    typo = terminal("workflows", "signal", id, "aproved", *behind)
    assert "The run does not wait for it now. It waits for: approved." in typo.words
    wrong = terminal("workflows", "signal", id, "approved", '{"by": "Ada"}', *behind, "--json")
    assert (wrong.code, wrong.error["code"]) == (1, "bad_signal")
    assert "Sent signal approved to run 7." in terminal("workflows", "signal", id, "approved", '"yes"', *behind).words
    worked()

    found = shown(terminal, id)
    assert (found["state"], found["result"], found["ended_at"] > found["created_at"]) == ("complete", "yes", True)
    assert "gathered 7" in terminal("workflows", "show", id).words
    for verb, word in (("signal", "takes no more signals"), ("pause", "is complete and was not paused")):
        said = terminal("workflows", verb, id, *(["approved"] if verb == "signal" else []), *behind)
        assert (said.code, word in said.words) == (1, True)
    said = terminal("workflows", "signal", id, "approved", "--json")
    assert (said.code, said.error["code"]) == (1, "run_ended")


def test_unclaimed_signals_are_shown_and_bad_ones_are_refused(lab: Path, terminal: Terminal) -> None:
    id = started(terminal, "research", input='{"cluster_id": 7}')
    terminal("workflows", "signal", id, "early", "[1]")
    assert [each["name"] for each in shown(terminal, id)["signals"]] == ["early"]
    assert "unread signals" in terminal("workflows", "show", id).words
    said = terminal("workflows", "signal", id, "approved", "{yes", "--json")
    assert (said.code, said.error["code"]) == (2, "bad_json")


@pytest.mark.spec("A7-08")
@pytest.mark.parametrize("target", [(), ("shop.db",), ("shop.py",)])
def test_runs_are_paused_resumed_terminated_and_restarted(
    lab: Path, terminal: Terminal, target: tuple[str, ...]
) -> None:
    for id in ("a", "b"):
        started(terminal, "sleepy", "--id", id)

    assert terminal("workflows", "pause", "a", "b", *target, "--json").told == {"paused": ["a", "b"], "refused": []}
    assert terminal("workflows", "pause", "a", *target).words.startswith("Paused run a.")  # it does already
    assert listed(terminal) == [("b", "paused"), ("a", "paused")]
    assert "Resume with: penstock workflows resume a" in terminal("workflows", "show", "a").words
    assert (
        terminal("workflows", "resume", "a", *target).words == "Resumed run a. Follow with: penstock workflows show a"
    )
    worked()
    assert listed(terminal) == [("b", "paused"), ("a", "waiting")]

    assert terminal("workflows", "terminate", "a", "b", "a", *target, "--json").told["terminated"] == ["a", "b"]
    said = terminal("workflows", "resume", "a", *target, "--json")
    assert (said.code, said.told["resumed"], said.told["refused"][0]["id"]) == (1, [], "a")
    said = terminal("workflows", "resume", "a", "nobody", *target)
    assert said.code == 4

    told = terminal("workflows", "restart", "a", *target, "--from", "first", "--json").told
    assert told == {"id": "a", "restarted": True, "from": "first"}
    assert "Restarted run b from its start" in terminal("workflows", "restart", "b", *target).words
    worked()
    assert listed(terminal) == [("b", "waiting"), ("a", "waiting")]
    assert shown(terminal, "a")["restarts"] == 1
    said = terminal("workflows", "restart", "a", *target, "--from", "nowhere", "--json")
    assert (said.code, said.error["code"]) == (4, "no_such_step")
    assert "It has: first" in said.error["message"]


def test_ids_may_look_like_anything_but_the_last_of_several_may_be_the_app(lab: Path, terminal: Terminal) -> None:
    for id in ("cluster:a", "page.db", "[7]", "a/b c"):
        started(terminal, "sleepy", "--id", id)

    assert terminal("workflows", "pause", "page.db", "--json").told["paused"] == ["page.db"]
    told = terminal("workflows", "pause", "a/b c", "[7]", "cluster:a", "--json").told
    assert told == {"paused": ["a/b c", "[7]", "cluster:a"], "refused": []}
    assert "Resumed 2 runs: [7], cluster:a." in terminal("workflows", "resume", "[7]", "cluster:a", "shop:app").words
    assert "sleepy [7]" in terminal("workflows", "show", "[7]").words
    assert terminal("workflows", "pause", "cluster:a", "page.db").code == 3  # there is no such database


def test_what_an_app_declares_of_its_workflows_stays_when_runs_are_changed_without_it(
    lab: Path, terminal: Terminal
) -> None:
    id = started(terminal, "sleepy")
    before = terminal("queues", "show", "workflow.sleepy", "--json").told
    for verb in ("pause", "resume", "restart", "terminate"):
        assert terminal("workflows", verb, id, "shop.db").code == 0
    after = terminal("queues", "show", "workflow.sleepy", "--json").told
    assert (after["settings"], after["accepts"]) == (before["settings"], before["accepts"])


@pytest.mark.fault("F33")
def test_runs_whose_code_has_changed_are_shown_with_the_difference_and_resumed_together(
    lab: Path, terminal: Terminal
) -> None:
    for id in ("a", "b"):
        started(terminal, "research", "--id", id, input='{"cluster_id": 7}')
    started(terminal, "sleepy", "--id", "c")
    terminal("workflows", "pause", "c")
    shop_in(lab, (SHOP + MORE).replace('"gather"', '"collect"'))
    for id in ("a", "b"):
        terminal("workflows", "signal", id, "approved", '"yes"')
    worked()

    assert listed(terminal, "research") == [("b", "paused"), ("a", "paused")]
    found = shown(terminal, "a")
    assert (found["state"], found["reason"]) == ("paused", "nondeterminism")
    said = terminal("workflows", "show", "a")
    assert "\n- gather  (recorded)\n+ collect  (what the code does now)\n- and 1 more recorded\n" in said.out
    assert "penstock workflows show ID" in terminal("workflows", "list").words

    shop_in(lab, SHOP + MORE)
    told = terminal("workflows", "resume", "--parked", "research", "shop.py", "--json").told
    assert told == {"resumed": ["a", "b"], "refused": []}
    worked()
    assert listed(terminal) == [("c", "paused"), ("b", "complete"), ("a", "complete")]
    assert terminal("workflows", "resume", "--parked", "shop.db", "--json").told == {"resumed": [], "refused": []}
    assert terminal("workflows", "resume", "--parked", "a", "b").code == 2
    assert terminal("workflows", "resume").code == 2


# -- trace and why ----------------------------------------------------------------------------------------


@pytest.mark.spec("A7-09")
def test_a_trace_is_asked_for_by_the_id_of_a_run_and_has_its_steps(
    lab: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    made = started(terminal, "research", input='{"cluster_id": 7}')
    started(terminal, "family", "--id", "mother of all")

    told = terminal("trace", made, "--json").told
    assert told["correlation_id"].replace("-", "") == made[1:]
    assert terminal("trace", told["correlation_id"], "--json").told == told
    assert [(each["kind"], each["name"], each["status"], each["run"]) for each in told["events"]] == [
        ("run", "research", "waiting", made),
        ("message", "workflow.run", "later", None),
        ("step", "gather", "done", made),
        ("signal", "approved", "waiting", made),
        ("message", "workflow.run", "delayed", None),
    ]
    assert told["events"][2]["duration_ms"] > 0
    lines = [line.strip() for line in terminal("trace", "mother of all", "shop.db").out.splitlines()]
    assert "2 messages: 2 delayed" in lines[0]
    assert any(line.endswith("run mother of all of family  waiting") for line in lines)
    assert any(line.endswith("child kid  waiting") for line in lines)
    assert any("run mother of all/kid of research  waiting  due in 59 min" in line for line in lines)
    said = terminal("trace", "nobody")
    assert (said.code, "no run of a workflow" in said.words) == (2, True)


def test_why_tells_what_a_run_waits_for_and_how_it_ended(lab: Path, terminal: Terminal) -> None:
    made = started(terminal, "research", input='{"cluster_id": 7}')
    for name in ("sleepy", "patient", "doomed", "trying", "family"):
        started(terminal, name, "--id", name)

    def why(id: str) -> tuple[str, str]:
        told = terminal("why", id, "--json").told
        return told["state"], told["reason"]

    assert why(made)[0] == "waiting"
    assert f"Run {made} of research waits: approved waits for a signal, which times out at 20" in why(made)[1]
    assert "signal approved  waiting  times out in " in terminal("trace", made).out
    assert why(made[1:]) == why(made)  # the id of its message
    assert "waits: sleep-1 sleeps until 20" in why("sleepy")[1]
    assert "waits: anything waits for a signal, without a timeout" in why("patient")[1]
    assert "step flaky failed and is retried at 20" in why("trying")[1]
    assert "kid waits for its child" in why("family")[1]
    assert why("doomed") == (
        "errored",
        "Run doomed of doomed is errored: StepFailed: Step 'closed' failed: Gone: the shop is closed, token=[redacted] at "
        "shop.py:57. See its steps with: penstock workflows show doomed",
    )
    assert "not known" in terminal("why", "patient").words
    terminal("workflows", "pause", "patient")
    assert why("patient") == (
        "paused",
        "Run patient of patient is paused. Resume it with: penstock workflows resume patient",
    )
    assert terminal("why", "nobody").code == 2
