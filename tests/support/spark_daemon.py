"""The process of Spark that forks its Python workers, with all modules of ours loaded before.

A worker ends with the first error in it, and tests of refusals make many: each would load everything anew.
"""

import importlib
import pkgutil
import sys

import microagg

if __name__ == "__main__":
    for module in pkgutil.walk_packages(microagg.__path__, "microagg."):
        if module.name.split(".")[1] not in ("cli", "page", "report", "estimator"):
            importlib.import_module(module.name)
    from pyspark import daemon

    sys.argv[0] = daemon.__file__
    daemon.manager()
