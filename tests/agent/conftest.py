"""Tools without a server: what a call answers, as it would be sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tracekit.agent.budget import DEFAULT, fitted, size
from tracekit.agent.inputs import Workplace
from tracekit.agent.tools import TOOLS

Ask = Callable[..., dict[str, Any]]
_TOOLS = {tool.name: tool for tool in TOOLS}


def asked(workplace: Workplace, name: str, budget: int = DEFAULT, **arguments: Any) -> dict[str, Any]:
    """The answer, within its budget."""
    tool = _TOOLS[name]
    question = msgspec.convert(arguments, tool.takes)
    document = fitted(tool.answer(workplace, question), question, arguments, budget)
    assert size(document) <= budget
    return document


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """Ask about the sample run."""
    workplace = Workplace(tmp_path_factory.mktemp("empty"))
    return lambda name, **arguments: asked(workplace, name, **{"inputs": ["sample"], **arguments})


@pytest.fixture
def below(tmp_path: Path) -> Ask:
    """Ask about what lies in tmp_path."""
    workplace = Workplace(tmp_path)
    return lambda name, **arguments: asked(workplace, name, **arguments)
