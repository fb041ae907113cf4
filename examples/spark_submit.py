"""Protect Parquet files on a Spark cluster, by a plan.

    spark-submit --master spark://host:7077 examples/spark_submit.py IN OUT plan.toml evidence.json

IN is a Parquet file or a folder of these, OUT a new folder; all workers read and write them, so that they are
on a disk that all of them have. microagg and what it needs is installed for the Python of the workers,
which PYSPARK_PYTHON names. OUT appears only when the promise was counted in what was written. The evidence
is written to a file, since spark-submit mixes stdout with all that Python and Spark have to say.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from microagg import MicroaggError, Plan
from microagg.job.job import Job
from microagg.job.observer import Observer
from microagg.job.run import run


class Speaker(Observer):
    """Tells stages and cautions."""

    def stage(self, name: str, words: str = "") -> None:
        """Say what begins."""
        print(name, words, file=sys.stderr)

    def caution(self, caution: object) -> None:
        """Say what to weigh."""
        print(getattr(caution, "sentence", caution), file=sys.stderr)

    def exposed(self, words: str) -> None:
        """Say what the cluster lets others read."""
        print(words, file=sys.stderr)


def main() -> int:
    """Do it; 0: done, 1: not what the plan accepts, 2: wrong use."""
    if len(sys.argv) != 5:
        print(__doc__, file=sys.stderr)
        return 2
    source, target, plan, told = map(Path, sys.argv[1:])
    try:
        job = Job(source, target, Plan.from_toml(plan), engine="spark")
        evidence = run(job, Speaker()).evidence
    except MicroaggError as error:
        print(error, file=sys.stderr)
        return 2
    told.write_text(json.dumps(evidence.as_dict(), indent=2), encoding="utf-8")
    return 1 if evidence.verdict == "red" else 0


if __name__ == "__main__":
    sys.exit(main())
