"""An app's workflows: registered in code, each with a queue of its own through which its runs go on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypedDict, TypeVar

from penstock.model.arguments import FromZero, PositiveSpan, checked
from penstock.model.errors import BadApp, NoSuchRun
from penstock.model.limits import Limits, near
from penstock.model.message import PRIORITIES, PRIORITY_NORMAL
from penstock.model.queue import PARALLEL_AUTOMATIC_MAX, QueueSettings
from penstock.model.retry import Retry, retry_of
from penstock.model.run import STATES, check_name, queue_of
from penstock.model.times import Span, in_seconds
from penstock.workflows.executor import Begun, Executor
from penstock.workflows.inputs import Inputs
from penstock.workflows.run import Run
from penstock.workflows.steps import RETRY
from penstock.workflows.workflow import Handle, RunState, Workflow, state_of

if TYPE_CHECKING:
    from penstock.app import App
    from penstock.queues.queue import Queue
    from penstock.runtime.engine import Engine


P = ParamSpec("P")
R = TypeVar("R")
Code = Callable[Concatenate[Run, P], Awaitable[R]]

KEPT_DAYS = 30.0
TIMEOUT_SECONDS = 1_800.0  # of one execution: half of it is for the step that begins last


class WorkflowOptions(TypedDict, total=False):
    """What `app.workflow(...)` takes."""

    name: str | None
    parallel: int | None
    priority: int
    retries: int | Retry | None
    timeout: Span
    keep_days: float


class Workflows:
    def __init__(self, home: App, limits: Limits, make_queue: Callable[[QueueSettings, Any], Queue[Any]]) -> None:
        self._home = home
        self._limits = limits
        self._make_queue = make_queue
        self._known: dict[str, Workflow[..., Any]] = {}

    @checked
    def add(
        self,
        function: Any,
        *,
        name: str | None = None,
        parallel: int | None = None,
        priority: int = PRIORITY_NORMAL,
        retries: int | Retry | None = None,
        timeout: PositiveSpan = TIMEOUT_SECONDS,
        keep_days: FromZero = KEPT_DAYS,
    ) -> Any:
        """Register a workflow, as `App.workflow` describes it."""
        name = check_name(name or function.__name__, "a workflow")
        if name in self._known:
            raise BadApp(f"There are two workflows called {name!r}. Give one of them another `name=`.", name=name)
        if priority not in PRIORITIES:
            raise BadApp(f"Workflow {name!r}: priority {priority!r} does not exist: 0 is high, 1 normal, 2 low.")
        most = self._limits.concurrency_max
        if parallel is not None and parallel > most:
            raise BadApp(f"Workflow {name!r}: parallel is {parallel:,}; it can be {most:,} at most.")
        settings = QueueSettings(
            queue_of(name),
            parallel=parallel,
            parallel_max=min(self._limits.concurrency_max, PARALLEL_AUTOMATIC_MAX),
            retry=self._limits.retry,
            timeout_seconds=in_seconds(timeout),
        )
        inputs = Inputs(name, function)
        queue = self._make_queue(settings, Begun)
        kept = keep_days * 86_400.0
        executor = Executor(
            name,
            function,
            inputs,
            retry=retry_of(RETRY, retries),
            timeout_seconds=settings.timeout_seconds,
            kept_seconds=kept,
        )
        queue.handler(Begun, name=name)(executor.run)
        queue.dead_letter_handler(executor.died)
        workflow: Workflow[..., Any] = Workflow(
            self._home, name, function, inputs, queue, priority=priority, kept_seconds=kept
        )
        self._known[name] = workflow
        return workflow

    def __getitem__(self, name: str) -> Workflow[..., Any]:
        if name not in self._known:
            raise NoSuchRun(f"There is no workflow {name!r}. {near(name, self._known)}", code="no_such_workflow")
        return self._known[name]

    def names(self) -> Sequence[str]:
        return sorted(self._known)

    async def list(
        self, workflow: str | None = None, *, state: str | None = None, limit: int = 100
    ) -> Sequence[RunState]:
        """Return runs, newest first, without their steps."""
        if state is not None and state not in STATES:
            raise NoSuchRun(f"There is no state {state!r}: runs are {', '.join(STATES)}.")
        engine: Engine = await self._home._opened()
        listed, now = engine.writer.runs.listed, engine.clock.now()
        rows = await engine.in_writer(listed, workflow, state, now=now, limit=limit)
        return [state_of(row, []) for row in rows]

    async def find(self, id: str) -> Handle[..., Any]:
        """The run of this id, of whichever workflow."""
        engine: Engine = await self._home._opened()
        for workflow in self._known.values():
            handle = workflow[id]
            row = await engine.in_writer(engine.writer.runs.find, handle.key, now=engine.clock.now())
            if row is not None and row.workflow == workflow.name:
                return handle
        raise NoSuchRun(f"There is no run {id!r} of {', '.join(self.names()) or 'any workflow'}.", id=id)
