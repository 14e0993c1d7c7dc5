"""What an operator does on a page: each action with its role, its form, the command that it stands for, and its result.

The actions are those of the command line and go through the same methods, so their audit is written in the commit of their
effect. A dangerous one has a page of its own that says what it will do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.app import App
from penstock.model.errors import BadParameter, PenstockError
from penstock.model.run import ENDED
from penstock.model.strict_json import BadJson, parse
from penstock.pages import ActionResult
from penstock.queues.admin import parallel_of, rate_of
from penstock.queues.external import PushRequest
from penstock.views import queues as queue_views
from penstock.views import runs as run_views
from penstock.views.view import counted
from penstock.web.ui.access import Role
from penstock.web.ui.form import Form
from penstock.web.ui.reading import PageSource
from penstock.workflows.run import Run

if TYPE_CHECKING:
    from penstock.web.ui.bulk import Jobs

REASON_LENGTH_MAX = 500
PLAIN_TYPES = ("text", "bytes")


@dataclass(frozen=True, slots=True)
class Doing:
    """What an action works with. `source` reads beside the app."""

    app: App
    source: PageSource
    form: Form
    jobs: Jobs
    actor: str
    origin: str


Act = Callable[[Doing], Awaitable[str | ActionResult]]  # returns what was done, as a sentence


@dataclass(frozen=True, slots=True)
class Action:
    path: str
    act: Act
    role: Role = Role.OPERATOR
    keeps: Sequence[str] = ()  # fields that are shown again where it was not done


# -- queues -------------------------------------------------------------------------------------------------


async def pause_queue(doing: Doing) -> str:
    name = doing.form.needed("name")
    await (await doing.app.desk()).pause(name)
    return f"Paused queue {name}. Handlers that run are finished; nothing more is delivered until it is resumed."


async def resume_queue(doing: Doing) -> str:
    name = doing.form.needed("name")
    await (await doing.app.desk()).resume(name)
    return f"Resumed queue {name}."


async def purge_queue(doing: Doing) -> str:
    """Purge if the name was typed and about as many messages wait as the page said."""
    name, typed, planned = doing.form.needed("name"), doing.form.text("typed"), doing.form.number("planned")
    if typed != name:
        raise BadParameter(f"Type the name of the queue, {name}, to purge it. Nothing was changed.", field="typed")
    admin = await doing.app.desk()
    waiting = (await admin.backlog(name)).count
    if has_changed(planned, waiting):
        raise BadParameter(
            f"{waiting:,} messages wait now; the page said {planned:,}. Look at it again. Nothing was changed."
        )
    return f"Purged {counted(await admin.purge(name), 'message')} of queue {name}."


def has_changed(planned: int, found: int) -> bool:
    """Return whether an action would now touch more than a tenth more than what the page said."""
    return found > planned + max(10, planned // 10)


async def tune_queue(doing: Doing) -> str:
    name, form = doing.form.needed("name"), doing.form
    row, _ = await doing.source.read(lambda reading: queue_views.queue_row(reading, name))
    parallel = row.parallel_tuned if row and form.text("parallel") is None else parallel_of(form.text("parallel"))
    rate = row.rate_tuned if row and form.text("rate") is None else rate_of(form.text("rate"))
    await (await doing.app.desk()).tune(name, parallel=parallel, rate=rate)
    return queue_views.tuned(name, parallel, rate)


async def send_message(doing: Doing) -> str:
    name, body, type_ = doing.form.needed("name"), doing.form.needed("body"), doing.form.text("type")
    declared = doing.app.queues.get(name)
    row, _ = await doing.source.read(lambda reading: queue_views.queue_row(reading, name))
    accepted = list(declared.accepts) if declared and declared.accepts else row.accepted() if row else None
    if type_ is None and accepted is not None and len(accepted) == 1:
        (type_,) = accepted
    if accepted is not None and type_ not in accepted:
        raise BadParameter(f"Queue {name!r} accepts {', '.join(accepted)}. Nothing was sent.", field="type")
    kind = type_ if type_ in PLAIN_TYPES else "json"
    value: Any = body.encode() if kind == "bytes" else body if kind == "text" else _json(body)
    if kind == "json" and type_ is not None:
        value = {"type": type_, "payload": value}
    pushed = await (await doing.app.desk()).push(name, [PushRequest(body=value, content_type=kind)], source="cli")
    return f"Sent message {pushed.ids[0]} to queue {name}."


def _json(text: str) -> object:
    try:
        return parse(text.encode("utf-8", "replace"))
    except BadJson as error:
        raise BadParameter(f"This is not JSON: {error} Nothing was changed.", field="body") from error


# -- dead letters -------------------------------------------------------------------------------------------


async def replay_one(doing: Doing) -> str:
    number = doing.form.number("id")
    done = await doing.app.dead.replay([number], force=doing.form.text("force") is not None)
    if not done:
        letter = await doing.app.dead.get(number)
        if letter.resolution is not None:
            raise PenstockError(f"Dead letter {number} was {letter.resolution} meanwhile by another operator.")
        raise PenstockError(f"Dead letter {number} was replayed {letter.replay_count} times. Find its cause first.")
    return f"Replayed dead letter {number}."


async def edit_letter(doing: Doing) -> str:
    number, body = doing.form.number("id"), doing.form.needed("body")
    letter = await doing.app.dead.get(number)
    if letter.type not in PLAIN_TYPES:
        _json(body)
    await doing.app.dead.edit(number, body.strip().encode("utf-8", "replace"))
    return f"Saved the payload of dead letter {number}. Replay it when it is right."


async def discard_letters(doing: Doing) -> str:
    numbers = [letter_number(each) for each in doing.form.all("id")]
    done = await doing.app.dead.discard(numbers, _reason(doing.form))
    return f"Discarded {counted(done, 'dead letter')}. {'They stay' if done != 1 else 'It stays'} readable."


def letter_number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise BadParameter(f"{text!r} is not the number of a dead letter.", field="id")
    return int(text)


def _reason(form: Form) -> str:
    reason = form.text("reason_given")
    if reason is None:
        raise BadParameter(
            "Give a reason: it is stored with the dead letter. Nothing was changed.", field="reason_given"
        )
    return reason[:REASON_LENGTH_MAX]


# -- cron, workflows, controllers ---------------------------------------------------------------------------


async def trigger_cron(doing: Doing) -> str:
    name = doing.form.needed("name")
    await doing.app.crons.trigger(name)
    return f"Triggered cron task {name}. A worker runs it."


async def pause_cron(doing: Doing) -> str:
    name = doing.form.needed("name")
    await doing.app.crons.pause(name)
    return f"Paused cron task {name}."


async def resume_cron(doing: Doing) -> str:
    name = doing.form.needed("name")
    await doing.app.crons.resume(name)
    return f"Resumed cron task {name}. Runs that it missed are not made up for."


async def _handle(doing: Doing) -> Any:
    id, workflow = doing.form.needed("id"), doing.form.needed("workflow")
    now = await doing.source.now()
    row, _ = await doing.source.read(lambda reading: run_views.the_run(reading, id, now=now, workflow=workflow))
    if row.workflow not in doing.app.workflows.names():
        doing.app.workflows.add(_placeholder, name=row.workflow)
    return doing.app.workflows[row.workflow][row.id]


async def _placeholder(run: Run) -> None:
    raise AssertionError("nothing runs here")


async def pause_run(doing: Doing) -> str:
    handle = await _handle(doing)
    await handle.pause()
    return f"Paused run {handle.id}. The current step finishes, and no other starts."


async def resume_run(doing: Doing) -> str:
    handle = await _handle(doing)
    await handle.resume()
    return f"Resumed run {handle.id}."


async def terminate_run(doing: Doing) -> str:
    handle = await _handle(doing)
    if doing.form.text("typed") != handle.id:
        raise BadParameter(f"Type the id of the run, {handle.id}, to terminate it. Nothing was changed.", field="typed")
    await handle.terminate()
    return f"Terminated run {handle.id}."


async def restart_run(doing: Doing) -> str:
    handle, step = await _handle(doing), doing.form.text("step")
    await handle.restart(step=step)
    return f"Restarted run {handle.id} from {'its start' if step is None else 'step ' + step}."


async def signal_run(doing: Doing) -> str:
    handle, name, payload = await _handle(doing), doing.form.needed("signal"), doing.form.text("payload")
    state = (await handle.status()).state
    if state in ENDED:
        raise PenstockError(f"Run {handle.id} is {state} and takes no more signals.")
    value = None if payload is None else _json(payload)
    async with doing.app.unit():
        handle.signal(name, value)
    return f"Sent signal {name} to run {handle.id}."


def _controller(verb: str) -> Act:
    async def act(doing: Doing) -> str:
        name, wanted = doing.form.needed("name"), {}
        if verb == "tune":
            wanted = {key: _amount(key, text) for key in TUNED if (text := doing.form.text(key)) is not None}
            if not wanted:
                raise BadParameter("Nothing to tune: give a rate, or how many at once.")
        if verb == "reset" and doing.form.text("typed") != name:
            raise BadParameter(f"Type the name, {name}, to reset it. Nothing was changed.", field="typed")
        await doing.app.controllers.operate(name, verb, **wanted)
        done = {"start": "Started", "stop": "Stopped", "tune": "Tuned", "reset": "Reset"}[verb]
        return f"{done} controller {name}."

    return act


TUNED = ("rate", "parallel", "batch_size", "interval_ms")


def _amount(name: str, text: str) -> float:
    try:
        return float(text) if name == "rate" else int(text)
    except ValueError:
        raise BadParameter(f"{name.replace('_', ' ')} is {text!r}; write a number.", field=name) from None


ACTIONS: Sequence[Action] = (
    Action("/do/queues/pause", pause_queue),
    Action("/do/queues/resume", resume_queue),
    Action("/do/queues/tune", tune_queue),
    Action("/do/queues/send", send_message),
    Action("/do/queues/purge", purge_queue, Role.ADMIN),
    Action("/do/dead/replay", replay_one),
    Action("/do/dead/edit", edit_letter),
    Action("/do/dead/discard", discard_letters),
    Action("/do/cron/trigger", trigger_cron),
    Action("/do/cron/pause", pause_cron),
    Action("/do/cron/resume", resume_cron),
    Action("/do/workflows/pause", pause_run),
    Action("/do/workflows/resume", resume_run),
    Action("/do/workflows/terminate", terminate_run),
    Action("/do/workflows/restart", restart_run),
    Action("/do/workflows/signal", signal_run),
    Action("/do/controllers/start", _controller("start")),
    Action("/do/controllers/stop", _controller("stop")),
    Action("/do/controllers/tune", _controller("tune")),
    Action("/do/controllers/reset", _controller("reset"), Role.ADMIN),
)
