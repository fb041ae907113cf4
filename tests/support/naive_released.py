"""Naive twin of what groups lose by the values that they release: from the definitions, value by value."""

from naive_mixed import loss


def released_loss(columns, labels, weights, majority=False):
    """Loss of all columns together, each with an inertia of its importance times m − 1.

    A column is a dict: kind, values (None: missing), importance, and, where it has them, allowed (levels that
    may be released), spike, release, rounded.
    """
    total = 0.0
    for column in columns:
        x, kind = column["values"], column["kind"]
        y = [None] * len(x)
        for group in set(labels):
            members = [i for i, label in enumerate(labels) if label == group]
            mine = [i for i in members if x[i] is not None]
            if mine and not (majority and 2 * len(mine) <= len(members)):
                value = _released(column, [(x[i], weights[i]) for i in mine])
                for i in mine:
                    y[i] = value
        kind, spike = "number" if kind == "integer" else kind, column.get("spike")
        _, released = loss(kind, x, y, labels, weights, spike=spike) or (0.0, 0.0)
        there = len(x) - x.count(None)
        total += column.get("importance", 1.0) * (there - 1) * released
    return total


def _mean(pairs):
    return sum(v * w for v, w in pairs) / sum(w for _, w in pairs)


def _released(column, pairs):
    """The value of a group, from the values that are there and their weights; None: none may be released."""
    kind, mean = column["kind"], _mean(pairs)
    if kind == "nominal":
        held = {v: sum(w for u, w in pairs if u == v) for v, _ in pairs if v in column["allowed"]}
        return max(held, key=held.get) if held else None
    if kind == "ordinal":
        return min(column["allowed"], key=lambda level: abs(level - mean), default=None)
    if kind == "spiked":
        spike = column["spike"]
        off = [(v, w) for v, w in pairs if v != spike]
        if not off:
            return spike
        if column.get("release") != "spike":
            return mean
        return _mean(off) if 2 * sum(w for _, w in off) > sum(w for _, w in pairs) else spike
    return round(mean) if column.get("rounded") else mean
