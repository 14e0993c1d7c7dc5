"""OpenTelemetry: deliveries of a chain are spans of one trace, and reach a receiver of the protocol."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from uuid import UUID

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import penstock as ps
from penstock.telemetry import instrument
from penstock.testing import TestApp, virtual


def shop_app() -> ps.App:
    app = ps.App("shop", migrations="none")
    orders, parcels = app.queue("orders", retries=1), app.queue("parcels")

    @orders.handler
    async def book(order: dict[str, int]) -> None:
        if order["count"] > 9:
            raise ValueError("too many")
        parcels.send({"of": order["count"]})

    @parcels.handler
    async def pack(parcel: dict[str, int]) -> None: ...

    return app


@virtual
async def test_the_deliveries_of_a_chain_are_spans_of_one_trace() -> None:
    spans, numbers = InMemorySpanExporter(), InMemoryMetricReader()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    app = shop_app()
    end = instrument(app, tracer_provider=provider, meter_provider=MeterProvider([numbers]))
    async with TestApp(app) as shop:
        sent = await shop.send(app.queues["orders"], {"count": 1})
        await shop.advance(seconds=5)
        await shop.send(app.queues["orders"], {"count": 10})
        await shop.advance(minutes=5)
    end()

    good = [span for span in spans.get_finished_spans() if span.context and span.context.trace_id == UUID(sent).int]
    bad = [span for span in spans.get_finished_spans() if span not in good]
    assert [span.name.partition(" ")[0] for span in good] == ["orders", "parcels"]
    assert all((span.attributes or {})["penstock.outcome"] == "done" for span in good)
    assert [span.status.status_code for span in bad] == [StatusCode.ERROR, StatusCode.ERROR]
    assert "too many" in (bad[0].status.description or "")
    data = numbers.get_metrics_data()
    assert data is not None
    counted: dict[str, float] = {}
    for metric in data.resource_metrics[0].scope_metrics[0].metrics:
        points: Any = metric.data.data_points
        if metric.name != "penstock.wait":
            counted[metric.name] = sum(point.value for point in points)
    assert counted == {"penstock.deliveries": 4, "penstock.dead_letters": 1}


@virtual
async def test_steps_and_outside_calls_are_spans_below_their_delivery() -> None:
    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    app = ps.App("shop", migrations="none")
    web = app.http()
    asked: list[str] = []

    async def shop_site(scope: Any, receive: Any, send: Any) -> None:
        asked.append(scope["path"])
        await send({"type": "http.response.start", "status": 503 if len(asked) == 1 else 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    web.mount("https://shop.example", shop_site)

    async def fetch() -> int:
        return (await web.get("https://shop.example/offers?token=secret-1")).status

    @app.workflow(retries=2)
    async def crawl(run: ps.Run) -> int:
        return await run.step("fetch offers", fetch)

    end = instrument(app, tracer_provider=provider)
    async with TestApp(app) as shop:
        async with shop.unit():
            app.workflows["crawl"]["one"].start()
        await shop.advance(minutes=5)
        end()
        await web.get("https://shop.example/after")

    finished = {span.context.span_id: span for span in spans.get_finished_spans() if span.context}
    steps = [span for span in finished.values() if span.name == "step fetch offers"]
    calls = [span for span in finished.values() if span.name == "request GET"]
    assert len(asked) == 3
    assert [span.status.status_code for span in steps] == [StatusCode.ERROR, StatusCode.UNSET]
    assert [(span.attributes or {})["http.response.status_code"] for span in calls] == [503, 200]
    for step, call in zip(steps, calls, strict=True):
        assert call.parent is not None
        assert finished[call.parent.span_id] is step
        assert step.parent is not None
        assert finished[step.parent.span_id].name.startswith("workflow.crawl ")
        assert (step.attributes or {})["penstock.run"] == "one"
        assert "secret-1" not in str((call.attributes or {})["url.full"])
    assert len({span.context.trace_id for span in finished.values() if span.context}) == 1


def test_spans_reach_a_receiver_of_otlp() -> None:
    received: list[ExportTraceServiceRequest] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = ExportTraceServiceRequest()
            request.ParseFromString(self.rfile.read(int(self.headers["content-length"])))
            received.append(request)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *given: object) -> None:
            return

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        exporter = OTLPSpanExporter(f"http://127.0.0.1:{server.server_port}/v1/traces")
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        app = shop_app()

        @virtual
        async def live() -> None:
            end = instrument(app, tracer_provider=provider)
            async with TestApp(app) as shop:
                await shop.send(app.queues["orders"], {"count": 2})
                await shop.advance(seconds=5)
            end()

        live()
        provider.shutdown()
        server.shutdown()

    names = [
        span.name for each in received for part in each.resource_spans for s in part.scope_spans for span in s.spans
    ]
    assert [name.partition(" ")[0] for name in names] == ["orders", "parcels"]
