"""A small survey, and the page over its folder."""

import pytest

from visitor import Visitor, served, survey


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("data")
    survey().to_csv(found / "survey.csv", index=False)
    return found


@pytest.fixture(scope="session")
def server(folder, tmp_path_factory):
    """One server for all tests, over the folder: its process takes seconds to start."""
    with served(folder, temporary=tmp_path_factory.mktemp("private")) as found:
        yield found


@pytest.fixture
def visitor(server, folder):
    """A visitor with the survey open and its plan as drafted, with the fastest method."""
    found = Visitor(server)
    found.open(folder / "survey.csv")
    found.plan(k=3)
    return found
