"""Naive twin of what groups lose by the values that they release: from the definitions, value by value."""


def released_loss(columns, labels, weights, majority=False):
    """Loss of all columns together, each with an inertia of its importance times m − 1.

    A column is a dict: kind, values (None: missing), importance, and, where it has them, allowed (levels that
    may be released), spike, release, rounded.
    """
    return sum(_column(column, labels, weights, majority) for column in columns)


def _column(column, labels, weights, majority):
    values = column["values"]
    there = [i for i, value in enumerate(values) if value is not None]
    mass = sum(weights[i] for i in there)
    place = _places(column, there, weights)
    spots = {i: place(values[i]) for i in there}
    width = len(spots[there[0]])
    centre = [sum(weights[i] * spots[i][c] for i in there) / mass for c in range(width)]
    total = sum(weights[i] * _square(spots[i], centre) for i in there)
    if total == 0:
        return 0.0
    lost = 0.0
    for group in set(labels):
        members = [i for i, label in enumerate(labels) if label == group]
        mine = [i for i in members if values[i] is not None]
        if not mine:
            continue
        blank = majority and 2 * len(mine) <= len(members)
        value = None if blank else _released(column, [(values[i], weights[i]) for i in mine])
        at = centre if value is None else place(value)
        lost += sum(weights[i] * _square(spots[i], at) for i in mine)
    return column.get("importance", 1.0) * (len(there) - 1) * lost / total


def _places(column, there, weights):
    """Where a value is, before any scaling."""
    kind, values = column["kind"], column["values"]
    if kind == "nominal":
        levels = sorted({values[i] for i in there})
        return lambda value: [float(value == level) for level in levels]
    if kind != "spiked":
        return lambda value: [float(value)]
    spike = column["spike"]
    off = [i for i in there if values[i] != spike]
    mean = sum(weights[i] * values[i] for i in off) / sum(weights[i] for i in off)
    return lambda value: [0.0, 0.0] if value == spike else [mean - spike, value - mean]


def _square(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))


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
