"""How much measuring costs, in microseconds a statement, and how near its estimates of rows read are.

    python bench/meter.py              the costs, also in build/bench/meter.json
    python bench/meter.py --table      the table of docs/explain/meter.md

Plain and measured take turns in short rounds, and the fastest of each counts: what others do on the machine only adds.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import apsw

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from bench.disk import fdatasync_seconds
from bench.meter_shapes import SHAPES, Shape, database, markdown, measured
from bench.report import ROOT, Report, Row, number, size_of, table
from penstock.storage.sqlite.meter import SqliteMeter

ROUNDS = 60
ROUND_RUNS = 200
BATCH = 1_000

POINT = "select k from t where id = ?"
PROBE = "select 1 from t where v = ? limit 1"
FILTERED = "select k from t where v = ? and x > 500"
UPDATE = "update t set x = ? where id = 7"
INSERT = "insert into t (k, v, x) values ('a', ?, 2)"
UPSERT = "insert into parent (name) values (?) on conflict (name) do nothing"


def fastest(*ways: Callable[[], object], runs: int = ROUND_RUNS, each: int = 1) -> list[float]:
    """Microseconds that one run of each way takes."""
    best = [float("inf")] * len(ways)
    for _ in range(ROUNDS):
        for place, way in enumerate(ways):
            began = time.perf_counter()
            for _ in range(runs):
                way()
            best[place] = min(best[place], (time.perf_counter() - began) / runs / each * 1e6)
    return best


class Bench:
    def __init__(self) -> None:
        self.connection = database()
        self.meter = SqliteMeter(self.connection)
        self.rows: list[Row] = []

    def add(self, subject: str, measure: str, plain: float, metered: float) -> None:
        self.rows.append(
            Row(subject, measure, metered - plain, "us", plain, (metered - plain) / plain, durability="off")
        )

    def single(self, name: str, sql: str) -> None:
        execute = self.connection.execute
        meter = self.meter

        def plain() -> None:
            execute(sql, (7,)).fetchall()

        def metered() -> None:
            meter.begin(sql, (7,))
            rows = execute(sql, (7,)).fetchall()
            meter.end(sql, rows=len(rows))

        execute("begin")
        self.add("one statement", name, *fastest(plain, metered))
        execute("rollback")

    def many(self, name: str, sql: str) -> None:
        given = [(number,) for number in range(BATCH)]

        def batch(measure: Callable[[], None]) -> Callable[[], None]:
            def run() -> None:
                self.connection.execute("begin")
                measure()
                self.connection.executemany(sql, given)
                if measure is not nothing:
                    self.meter.end(sql, rows=0)
                self.connection.execute("rollback")

            return run

        def nothing() -> None:
            pass

        plain, metered = fastest(
            batch(nothing), batch(lambda: self.meter.begin(sql, given[0], executions=BATCH)), runs=1, each=BATCH
        )
        self.add(f"one of {BATCH:,} executions", name, plain, metered)

    def new_texts(self) -> None:
        """What the first execution of a text costs more: its program is listed and worked out."""
        for shape in SHAPES:
            self.rows.append(Row("a new text", shape.name, self._first(shape), "us", durability="off"))

    def _first(self, shape: Shape) -> float:
        best = float("inf")
        for _ in range(5):
            meter = SqliteMeter(self.connection)
            measured(meter, self.connection, SHAPES[0])
            began = time.perf_counter()
            measured(meter, self.connection, shape)
            between = time.perf_counter()
            measured(meter, self.connection, shape)
            best = min(best, 2 * between - began - time.perf_counter())
        return max(best, 0.0) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description="What measuring costs, and how near its estimates are.")
    parser.add_argument("--brief", action="store_true", help="no shorter: it is brief as it is")
    parser.add_argument("--table", action="store_true", help="print the table of docs/explain/meter.md")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where meter.json goes")
    given = parser.parse_args()
    if given.table:
        print(markdown())
        return
    bench = Bench()
    bench.single("row by rowid", POINT)
    bench.single("probe of an index", PROBE)
    bench.single("range with a filter, traced", FILTERED)
    bench.single("update by rowid", UPDATE)
    bench.many("insert", INSERT)
    bench.many("insert or nothing", UPSERT)
    bench.new_texts()
    report = Report("meter", seed=0, rows=bench.rows, size=size_of(given))
    with tempfile.TemporaryDirectory() as folder:
        report.fdatasync_p50_ms = 1000 * fdatasync_seconds(Path(folder))
    print(f"Microseconds added to a statement; SQLite {apsw.sqlite_lib_version()}, in memory\n")
    shown = [row for row in report.rows if row.reference is not None]
    print(
        table(
            ("measured as", "statement", "plain", "added", "ratio"),
            [
                (row.subject, row.measure, number(row.reference or 0), number(row.value), f"{row.ratio or 0:.2f}")
                for row in shown
            ],
        )
    )
    ratios = sorted(
        (measured(bench.meter, bench.connection, shape).rows_read + 1) / (shape.truth + 1) for shape in SHAPES
    )
    exact = sum(ratio == 1 for ratio in ratios)
    print(
        f"\nRows read: {exact} of {len(ratios)} shapes exact, median {ratios[len(ratios) // 2]:.2f} times the truth, "
        f"worst {ratios[-1]:.1f}, lowest {ratios[0]:.2f}."
    )
    firsts = sorted(row.value for row in report.rows if row.reference is None)
    print(
        f"\nThe first execution of a text: {number(firsts[len(firsts) // 2])} us more, at most {number(firsts[-1])} us."
    )
    print(f"Written to {report.write(given.out)}")


if __name__ == "__main__":
    main()
