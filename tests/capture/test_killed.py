"""Whatever a script does to files, and whenever its capture is killed: none of the user's is altered or lost."""

import random
import sys

import pytest

from tests.capture.killing import SEEN, UNSEEN, altered

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="passes outlive a killed capture elsewhere")


@pytest.mark.parametrize("name", [*SEEN, *UNSEEN])
def test_in_a_view_nothing_is_altered(tmp_path, name):
    assert altered(tmp_path, name, view=True, moment=random.Random(name)) == {}


@pytest.mark.parametrize("name", SEEN)
def test_without_a_view_all_is_put_back(tmp_path, name):
    assert altered(tmp_path, name, view=False, moment=random.Random(name)) == {}


@pytest.mark.parametrize("view", [True, False])
def test_of_captures_at_once_each_is_undone_by_itself(tmp_path, view):
    assert altered(tmp_path, "write", view=view, moment=random.Random(7), beside=True) == {}


@pytest.mark.parametrize("name", [name for name in SEEN if name not in ("map", "truncate")])
def test_after_a_reboot_the_journal_is_still_there(tmp_path, name):
    left = altered(tmp_path, name, view=False, moment=random.Random(name), reboot=True)
    assert set(left.values()) <= {"kept"}
