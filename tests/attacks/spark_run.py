"""A run of the command on Spark that waits at a stage, for tests that look at it, or end it, from outside.

``python spark_run.py STAGE SOURCE TARGET`` prints its process number and that of Java at the stage, and goes
on when it is sent a line.
"""

import json
import os
import sys
from typing import Any

STAGE, SOURCE, TARGET = sys.argv[1:] if len(sys.argv) == 4 else ("", "", "")
LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def main() -> None:
    """Run the command, and wait at the stage."""
    from microagg.cli import main as command
    from microagg.cli import protect_command as protect

    class Waiting(protect._Listener):
        def stage(self, name: str, words: str = "") -> None:
            super().stage(name, words)
            if name == STAGE:
                from pyspark import SparkContext

                gateway: Any = SparkContext._gateway
                print(json.dumps({"python": os.getpid(), "java": gateway.proc.pid}), flush=True)
                sys.stdin.readline()

    protect._Listener = Waiting  # type: ignore[misc]
    os.environ["JDK_JAVA_OPTIONS"] = LIGHT
    asked = ["protect", SOURCE, TARGET, "--k", "3", "--columns", "x,y", "--method", "pca"]
    sys.argv = ["microagg", *asked, "--engine", "spark", "--master", "local[2]"]
    command.main()


if __name__ == "__main__":
    main()
