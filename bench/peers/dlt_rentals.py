"""The same records through dlt into SQLite: `python dlt_rentals.py RECORDS.jsonl FOLDER AGAIN`, where dlt[sqlalchemy] is
installed.

A resource with the id as primary key is merged into one table, in pages of 500. Then a pipeline of its own loads the first
AGAIN records twice: the time that dlt needs for a record that it has grows with their number.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE = 500


def main() -> None:
    import dlt  # type: ignore[import-not-found,unused-ignore]

    records = [json.loads(line) for line in Path(sys.argv[1]).read_text("utf-8").splitlines()]
    folder = Path(sys.argv[2])

    def load(name: str, chosen: list[dict[str, Any]], times: int) -> tuple[float, int]:
        """Return the seconds of the last of these runs, and the rows after it."""

        @dlt.resource(name="listings", primary_key="id", write_disposition="merge", max_table_nesting=0)  # type: ignore[untyped-decorator,unused-ignore]
        def listings() -> Iterator[list[dict[str, Any]]]:
            for start in range(0, len(chosen), PAGE):
                yield chosen[start : start + PAGE]

        pipeline = dlt.pipeline(
            name,
            pipelines_dir=str(folder / "pipelines"),
            destination=dlt.destinations.sqlalchemy(f"sqlite:///{folder / name}.db"),
            dataset_name="main",
        )
        for _ in range(times):
            began = time.perf_counter()
            pipeline.run(listings())
            seconds = time.perf_counter() - began
        with pipeline.sql_client() as client:
            [[count]] = client.execute_sql("select count(*) from listings")
        return seconds, count

    first, rows = load("new", records, 1)
    again, _ = load("again", records[: int(sys.argv[3])], 2)
    print(json.dumps({"first": first, "again": again, "rows": rows, "version": dlt.__version__}))


if __name__ == "__main__":
    main()
