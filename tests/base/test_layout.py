"""Where things lie, by the environment alone."""

from __future__ import annotations

import pytest

from termsprawlctl.base.errors import UsageError
from termsprawlctl.base.layout import default_data_directory, state_directory


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"TERMSPRAWL_DATA": "/d/../e", "HOME": "/h"}, "/e"),
        ({"TERMSPRAWL_DATA": "", "HOME": "/h"}, "/h/.local/state/termsprawlctl"),
        ({"XDG_STATE_HOME": "/s", "HOME": "/h"}, "/s/termsprawlctl"),
        ({"XDG_STATE_HOME": "s", "HOME": "/h"}, "/h/.local/state/termsprawlctl"),
    ],
)
def test_the_data_directory_is_the_first_that_is_named(environment, expected):
    assert default_data_directory(environment) == expected


@pytest.mark.parametrize("name", ["data", "./data", "../data", "~/data"])
def test_a_name_that_means_another_directory_in_each_folder_is_refused(name):
    with pytest.raises(UsageError, match="TERMSPRAWL_DATA is not an absolute path"):
        default_data_directory({"TERMSPRAWL_DATA": name, "HOME": "/h"})


@pytest.mark.parametrize("environment", [{}, {"HOME": ""}, {"HOME": "h"}, {"XDG_STATE_HOME": "s"}])
def test_without_a_home_there_is_none(environment):
    assert state_directory(environment) is None
    with pytest.raises(UsageError, match="HOME is not set"):
        default_data_directory(environment)
