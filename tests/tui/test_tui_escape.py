"""The app responds to Esc without delay."""

import os
import selectors

import pytest
from textual.drivers import linux_driver

from tracekit.tui.terminal import DELAY_MS, SoonAgain, answer_escape_soon


def test_after_input_the_wait_for_more_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float | None] = []
    came = iter([[], ["Esc"], [], []])

    def select(self: SoonAgain, timeout: float | None = None) -> list[object]:
        waits.append(timeout)
        return next(came)

    monkeypatch.setattr(selectors.SelectSelector, "select", select)
    selector = SoonAgain()
    for _ in range(4):
        selector.select(0.1)
    assert waits == [0.1, 0.1, pytest.approx(0.0012 * DELAY_MS), 0.1]


def test_what_comes_is_read() -> None:
    read, write = os.pipe()
    with SoonAgain() as selector:
        selector.register(read, selectors.EVENT_READ)
        os.write(write, b"\x1b")
        assert [key.fd for key, _ in selector.select(10)] == [read]
    os.close(read)
    os.close(write)


def test_textual_waits_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux_driver, "selectors", selectors)  # put back after the test
    monkeypatch.delenv("ESCDELAY", raising=False)
    answer_escape_soon()
    assert linux_driver.selectors.SelectSelector is SoonAgain
    assert "selectors.SelectSelector()" in _source()
    assert os.environ["ESCDELAY"] == str(DELAY_MS)


def _source() -> str:
    import inspect

    return inspect.getsource(linux_driver.LinuxDriver.run_input_thread)
