"""The information loss of each method on the reference data beside what its paper prints."""

import pytest

import microagg
import published


def within(points, less=None):
    """From so many points below a printed loss, or ``less`` where given, to so many above it."""
    return lambda loss: (loss - (points if less is None else less), loss + points)


TO_TWO_DIGITS = within(0.00501)
# Published losses by method, and between which figures ours must be.
LOSSES = {
    # Three of the twelve published cells differ from ours in the fourth decimal, by 6e-4 at most.
    "mdav": (published.MDAV, within(7e-4)),
    "mdav, as others checked it": (published.MDAV_CHECKED, within(0.000501)),
    "diameter": (published.DIAMETER, TO_TWO_DIGITS),
    # On Tarragona the paper departs from its pseudocode, which loses less.
    "centroid": ({"census": published.CENTROID["census"]}, TO_TWO_DIGITS),
    "centroid, as others checked it": (published.CENTROID_CHECKED, TO_TWO_DIGITS),
    # M is met to the printed digits. M-d and M-c are not, though M, D and (but for Tarragona) C are:
    # the paper leaves something of the splitting open that we did not find.
    "mst": (published.MST, within(0.006)),
    "mst-d": (published.MST_D, within(0.015)),
    "mst-c": (published.MST_C, within(0.075)),
    "v-mdav": (published.V_MDAV, TO_TWO_DIGITS),
    # The paper leaves choices open that move the loss by about as much; see the header of the method.
    "mu-approx": (published.MU_APPROX, lambda loss: (0.93 * loss, loss)),
    # Within 0.05 points, but for four cells in which ours loses less.
    "mdav-mhm": (published.MDAV_MHM, within(0.05, less=0.25)),
    # The paper's text leaves steps open; ours come within 4 % of its losses.
    "igd": (published.IGD, lambda loss: (0.96 * loss, 1.04 * loss)),
    # All nine cells with all starts are in docs/papers; some starts are enough for most.
    "rep-ord-mic": (published.REP_ORD_MIC, lambda loss: (0, 1.025 * loss)),
}
OPTIONS = {"rep-ord-mic": {"starts": 50}}
# Points by which ours are above what mu-Approx may lose.
ABOVE = {("tarragona", 10): 0.07, ("census", 10): 0.30, ("eia", 5): 0.01}
LEFT_OUT = {("rep-ord-mic", "eia"), ("rep-ord-mic", 5)}  # each takes long
CASES = [
    (name, data, k)
    for name, (losses, _) in LOSSES.items()
    for data in losses
    for k in losses[data]
    if not LEFT_OUT & {(name, data), (name, k)}
]


@pytest.mark.parametrize(("name", "data", "k"), CASES)
def test_information_loss(name, data, k, reference):
    losses, bounds = LOSSES[name]
    method, options = name.split(",")[0], OPTIONS.get(name, {})
    if method == "v-mdav":
        options = {"gamma": published.V_MDAV_GAMMA[data][k]}
    low, high = bounds(losses[data][k])
    above = ABOVE.get((data, k), 0) if method == "mu-approx" else 0
    loss = microagg.partition(reference(data), k, method=method, **options).information_loss
    assert low <= loss <= high + above


@pytest.mark.parametrize("data", published.MST_OVERSIZED)
@pytest.mark.parametrize("k", [3, 4, 5, 10])
def test_oversized_groups_of_trees(data, k, reference):
    sizes = microagg.partition(reference(data), k, method="mst").sizes
    large = sizes[sizes >= 2 * k]
    share, average = published.MST_OVERSIZED[data][k]
    assert 100 * len(large) / len(sizes) == pytest.approx(share, abs=0.006)
    assert large.mean() == pytest.approx(average, abs=0.006)
