"""OpenTelemetry: a span for each delivery, step and outside call, under the trace of the chain, and metrics of them.

Needs the extra `otel`. Only an app that is instrumented pays for it: events of deliveries are not made otherwise.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from uuid import UUID

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from penstock.model.ids import as_text
from penstock.model.redaction import redacted
from penstock.runtime.events import MessageDied, MessageReceived, MessageSettled, PaceChanged, StepsEnded
from penstock.runtime.unit import current_unit

if TYPE_CHECKING:
    from penstock.app import App

OPEN_MAX = 10_000  # deliveries under way in one process; more are not traced
NAME = "penstock"
ATTRIBUTES = {"url": "url.full"}  # that the conventions of OpenTelemetry name


def instrument(
    app: App,
    *,
    tracer_provider: trace.TracerProvider | None = None,
    meter_provider: metrics.MeterProvider | None = None,
) -> Callable[[], None]:
    """Trace the deliveries, steps and outside calls of an app, and count them, with the global providers or these. Return a
    function that ends it.

    Every delivery of a chain is a span of one trace, whose id is the correlation id of the chain: `penstock trace` and the
    backend of the traces find each other by it. A step is a span below the delivery that executes it, and a call of a client
    of `app.http` one below its step or delivery."""
    tracer = trace.get_tracer(NAME, tracer_provider=tracer_provider)
    made = _Instrument(app, tracer, metrics.get_meter(NAME, meter_provider=meter_provider))
    leave = [
        app.events.subscribe(made.received, to=MessageReceived),
        app.events.subscribe(made.settled, to=MessageSettled),
        app.events.subscribe(made.died, to=MessageDied),
        app.events.subscribe(made.stepped, to=StepsEnded),
        app.events.subscribe(made.paced, to=PaceChanged),
    ]

    app.events.tracer = made.traced

    def end() -> None:
        for each in leave:
            each()
        app.events.tracer = None
        made.end()

    return end


class _Instrument:
    def __init__(self, app: App, tracer: trace.Tracer, meter: metrics.Meter) -> None:
        self._service = app.name
        self._tracer = tracer
        self._open: dict[tuple[str, str, int], Span] = {}
        self._deliveries = meter.create_counter("penstock.deliveries", description="Deliveries that ended.")
        self._waits = meter.create_histogram(
            "penstock.wait", unit="ms", description="Time from a send to its delivery."
        )
        self._dead = meter.create_counter("penstock.dead_letters", description="Messages that became dead letters.")
        self._steps = meter.create_counter("penstock.steps", description="Steps of workflows that ended.")
        self._paces = meter.create_counter("penstock.pace_changes", description="Changes of a pace.")

    def received(self, event: MessageReceived) -> None:
        self._waits.record(event.processing_delay_ms, {"queue": event.queue})
        if len(self._open) >= OPEN_MAX:
            return
        attributes: dict[str, str | int] = {
            "messaging.system": NAME,
            "messaging.operation.type": "process",
            "messaging.destination.name": event.queue,
            "messaging.message.id": event.id,
            "messaging.message.conversation_id": event.correlation_id,
            "penstock.type": event.type,
            "penstock.attempt": event.attempt,
            "penstock.app": self._service,
            "penstock.source": event.source,
        }
        span = self._tracer.start_span(
            f"{event.queue} {event.type}", _chain(event.correlation_id), SpanKind.CONSUMER, attributes
        )
        self._open[event.queue, event.id, event.attempt] = span

    def settled(self, event: MessageSettled) -> None:
        facts = event.facts()
        outcome = type(event.settlement).__name__.lower()
        self._deliveries.add(1, {"queue": event.queue, "type": event.type, "outcome": outcome})
        span = self._open.pop((event.queue, event.id, event.attempt), None)
        if span is None:
            return
        span.set_attribute("penstock.outcome", outcome)
        if (error := facts.get("error")) is not None:
            span.set_status(Status(StatusCode.ERROR, str(error)[:500]))
        span.end()

    async def traced(self, kind: str, name: str, facts: Mapping[str, str | int], work: Awaitable[Any]) -> Any:
        """Await a step or an outside call in a span below that of its step or its delivery."""
        attributes = {ATTRIBUTES.get(key, f"penstock.{key}"): value for key, value in facts.items()}
        if kind == "request":
            attributes["http.request.method"] = name
        with self._tracer.start_as_current_span(
            f"{kind} {name}",
            self._around(),
            SpanKind.CLIENT if kind == "request" else SpanKind.INTERNAL,
            attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                result = await work
            except Exception as error:
                span.set_status(Status(StatusCode.ERROR, redacted(f"{type(error).__qualname__}: {error}")[:500]))
                raise
            if (status := getattr(result, "status_code", None)) is not None:
                span.set_attribute("http.response.status_code", status)
                if status >= 400:
                    span.set_status(Status(StatusCode.ERROR))
            return result

    def _around(self) -> Context | None:
        """Return the context of the delivery that runs here; None below another span, and outside of deliveries."""
        unit = current_unit.get()
        if trace.get_current_span().get_span_context().is_valid or unit is None or unit.delivery is None:
            return None
        delivery = unit.delivery
        span = self._open.get((delivery.queue, as_text(delivery.id), delivery.attempt))
        return _chain(as_text(delivery.correlation_id)) if span is None else trace.set_span_in_context(span)

    def died(self, event: MessageDied) -> None:
        self._dead.add(1, {"queue": event.queue, "reason": event.reason})

    def stepped(self, event: StepsEnded) -> None:
        for outcome, count in (("done", event.done), ("failed", event.failed)):
            if count:
                self._steps.add(count, {"workflow": event.workflow, "outcome": outcome})

    def paced(self, event: PaceChanged) -> None:
        self._paces.add(1, {"name": str(event.facts().get("controller") or event.facts().get("name") or "")})

    def end(self) -> None:
        for span in self._open.values():
            span.end()
        self._open.clear()


def _chain(correlation_id: str) -> Context:
    """Return the context of a chain: the parent that its deliveries have in common."""
    trace_id = UUID(correlation_id).int or 1
    parent = int.from_bytes(blake2b(trace_id.to_bytes(16, "big"), digest_size=8).digest(), "big") or 1
    context = SpanContext(trace_id, parent, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return trace.set_span_in_context(NonRecordingSpan(context))
