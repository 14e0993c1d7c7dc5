"""The same records through dlt into SQLite: `python dlt_rentals.py RECORDS.jsonl FOLDER`, where dlt[sqlalchemy] is installed.

A resource with the id as primary key is merged into one table, in pages of 500; a second run loads the same records.
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

    @dlt.resource(name="listings", primary_key="id", write_disposition="merge", max_table_nesting=0)  # type: ignore[untyped-decorator,unused-ignore]
    def listings() -> Iterator[list[dict[str, Any]]]:
        for start in range(0, len(records), PAGE):
            yield records[start : start + PAGE]

    pipeline = dlt.pipeline(
        "rentals",
        pipelines_dir=str(folder / "pipelines"),
        destination=dlt.destinations.sqlalchemy(f"sqlite:///{folder / 'dlt.db'}"),
        dataset_name="main",
    )
    seconds = []
    for _ in range(2):
        began = time.perf_counter()
        pipeline.run(listings())
        seconds.append(time.perf_counter() - began)
    with pipeline.sql_client() as client:
        [[count]] = client.execute_sql("select count(*) from listings")
    print(json.dumps({"first": seconds[0], "again": seconds[1], "rows": count, "version": dlt.__version__}))


if __name__ == "__main__":
    main()
