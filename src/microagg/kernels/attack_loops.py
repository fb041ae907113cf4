"""Loops of the attacks: nearest released rows by Gower's distance, rows for which a predicate holds, twins.

Coordinates are made so that one formula serves all kinds: a number lies between 0 and 1, a category is its
level number, a missing value is far below. The distance of two values is then min(1, |x − y|): the difference
of numbers over the column's range, 1 for different categories, 1 if one of them is missing, 0 if both are.
The distance of two records is the sum over columns (Gower 1971). Every released row is visited: that takes no
memory, suits any number of categories, and one visit serves all columns that are to be guessed.
"""

from __future__ import annotations

from microagg.compile.jit import lean_kernel, lean_subkernel
from microagg.kernels.kd_search import begin, next_leaf

EQUAL, AT_MOST, AT_LEAST = 0, 1, 2  # operators of a predicate
MISSING = -10.0
_SAME = 1e-9  # distances that differ by less are equal but for rounding


@lean_subkernel
def _apart(x, y):
    distance = abs(x - y)
    return distance if distance < 1.0 else 1.0


@lean_kernel
def nearest_but_one(people, rows, known, secrets, distance, best, nearest):
    """Find for each person and secret the first of the nearest rows, by all known columns but the secret.

    Parameters
    ----------
    people, rows : (m, d) and (n, d) coordinates, as the header says
    known : (d,) 1 for columns that the attacker knows, 0 for others
    secrets : (s,) column numbers
    distance, best : (d,) and (s,) scratch
    nearest : (m, s); filled with row numbers
    """
    for i in range(people.shape[0]):
        best[:] = 1e300
        worst = 1e300
        for r in range(rows.shape[0]):
            total = 0.0
            for j in range(rows.shape[1]):
                distance[j] = known[j] * _apart(people[i, j], rows[r, j])
                total += distance[j]
            if total - 1.0 >= worst:  # one column less takes at most 1 away
                continue
            worst = 0.0
            for s in range(secrets.size):
                apart = total - distance[secrets[s]]
                if apart < best[s] - _SAME:
                    best[s], nearest[i, s] = apart, r
                worst = max(worst, best[s])


@lean_kernel
def link_parts(people, rows, first, second, distances, linked):
    """Mark the people to whom some row is nearest by what each of two parties knows.

    Rows as near as the nearest, but for rounding, count as well.

    Parameters
    ----------
    people, rows : (m, d) and (n, d) coordinates, as the header says
    first, second : (m, d) 1 for the columns that each party knows about a person, 0 for others
    distances : (2, n) scratch
    linked : (m,); filled with 1 and 0
    """
    for i in range(people.shape[0]):
        first_least, second_least = 1e300, 1e300
        for r in range(rows.shape[0]):
            near_first, near_second = 0.0, 0.0
            for j in range(rows.shape[1]):
                apart = _apart(people[i, j], rows[r, j])
                near_first += first[i, j] * apart
                near_second += second[i, j] * apart
            distances[0, r], distances[1, r] = near_first, near_second
            first_least, second_least = min(first_least, near_first), min(second_least, near_second)
        linked[i] = 0
        for r in range(rows.shape[0]):
            if distances[0, r] <= first_least + _SAME and distances[1, r] <= second_least + _SAME:
                linked[i] = 1
                break


@lean_kernel
def list_matches(columns, used, operators, values, matches, count):
    """List the first records for which each predicate holds.

    Parameters
    ----------
    columns : (d, n) coordinates, column by column
    used, operators, values : (q, w) the conditions of each predicate, all of which must hold: a column, −1
        for none; EQUAL, AT_MOST or AT_LEAST; a coordinate
    matches : (q, most); row by row filled with record numbers
    count : (q,); filled with how many there are, at most ``most``
    """
    for q in range(used.shape[0]):
        count[q] = 0
        for r in range(columns.shape[1]):
            holds = True
            for a in range(used.shape[1]):
                j = used[q, a]
                if j >= 0:
                    x, value = columns[j, r], values[q, a]
                    if operators[q, a] == EQUAL:
                        holds = x == value
                    elif operators[q, a] == AT_MOST:
                        holds = MISSING < x <= value
                    else:
                        holds = x >= value
                    if not holds:
                        break
            if holds:
                matches[q, count[q]] = r
                count[q] += 1
                if count[q] == matches.shape[1]:
                    break


# How many records lie as near to a point as its own twin does, by Euclidean distance.


@lean_kernel
def count_by_tree(X, rows, inner, outer, tree, sizes, count):
    """Count the records about as far from each row as its twin: −1 if one is nearer.

    Parameters
    ----------
    X : (n, d) doubles
    rows : those to count for
    inner, outer : (n,) squared distances: a record below the first is nearer, one up to the second counts
    tree : of distinct points, with scratch arrays of this thread
    sizes : (points,) how many records each point stands for
    count : (n,); filled in at ``rows``
    """
    for i in rows:
        near, top = 0, begin(tree, X[i])
        while near >= 0:
            leaf, top = next_leaf(tree, top, X[i], outer[i], tree.leaf_of.size)
            if leaf < 0:
                break
            for s in range(tree.count[leaf]):
                if tree.entry[s] < inner[i]:
                    near = -1
                    break
                if tree.entry[s] <= outer[i]:
                    near += sizes[tree.rows[leaf, s]]
        count[i] = near


@lean_kernel
def count_by_scan(X, rows, inner, outer, points, sizes, count):
    """Do the same without a tree, for few points: each row is compared with all of them.

    Parameters
    ----------
    X, rows, inner, outer, sizes, count : as in :func:`count_by_tree`
    points : (points, d) distinct points
    """
    for i in rows:
        near, p = 0, 0
        while p < points.shape[0] and near >= 0:
            distance, j = 0.0, 0
            while j < X.shape[1] and distance <= outer[i]:
                distance += (points[p, j] - X[i, j]) * (points[p, j] - X[i, j])
                j += 1
            if distance < inner[i]:
                near = -1
            elif distance <= outer[i]:
                near += sizes[p]
            p += 1
        count[i] = near
