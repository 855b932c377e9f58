"""The owner of a file: looked up where the code runs, and judged by its path if only that is known."""

import os
import tempfile

import msgspec
import pytest

from tracekit.vocabulary import lines_file
from tracekit.vocabulary.code_owner import CodeOwners, Guess, library, may_be_the_users, owner_by_path

INDUCTOR = f"ab/cab{'x' * 40}.py"


@pytest.fixture
def owners(tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    monkeypatch.syspath_prepend(tmp_path / "shared")
    for name in ("mine.py", "shared/helping.py", "temporary/conv.gcn_conv_Propagate.py", "temporary/own.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    return CodeOwners()


def test_whose_a_file_is(tmp_path, owners):
    assert owners.of(str(tmp_path / "mine.py")) == "user"
    assert owners.of("helping.py") == "user"
    assert owners.full("helping.py") == str(tmp_path / "shared" / "helping.py")
    assert owners.of(str(tmp_path / "temporary" / "own.py")) == "user"
    assert owners.of(str(tmp_path / "temporary" / "conv.gcn_conv_Propagate.py")) == "generated"
    assert owners.of(str(tmp_path / INDUCTOR)) == "generated"
    assert owners.of("torch/x.py:codegen(wrapper)") == "generated"
    assert owners.of("<string>") == "generated"
    assert owners.of("<frozen importlib._bootstrap>") == "python"
    assert owners.of("<ipython-input-3-abc>") == "user"
    assert owners.of(os.__file__) == "python"
    assert owners.of("os.py") == "python"
    assert owners.of(msgspec.__file__) == "msgspec"
    assert owners.of(lines_file.__file__) == "tracekit"
    assert owners.of(str(tmp_path / "gone.py")) == "generated"


def test_what_is_left_of_a_path(tmp_path, owners):
    assert owners.relative(msgspec.__file__) == "msgspec/__init__.py"
    assert owners.relative(os.__file__) == "os.py"
    assert owners.relative(str(tmp_path / "shared" / "helping.py")) == "helping.py"
    assert owners.relative(str(tmp_path / "temporary" / "a" / "b.py")) == "a/b.py"
    assert owners.relative("/elsewhere/x.py") == "/elsewhere/x.py"


@pytest.mark.parametrize(
    ("file", "owner"),
    [
        ("train.py", "user"),
        ("<ipython-input-3-abc>", "user"),
        ("/tmp/ipykernel_12/345.py", "user"),
        ("torch/nn/modules/module.py", "torch"),
        ("/opt/pytorch/torch/nn/modules/module.py", "torch"),
        ("/opt/lib/python3.11/site-packages/torch/nn/modules/module.py", "torch"),
        ("/opt/lib/python3.11/site-packages/torch_geometric/nn/conv.py", "torch_geometric"),
        ("site-packages/six.py", "six"),
        ("torch_geometric/nn/conv.py", "torch_geometric"),
        ("torch_geometric.nn.conv.gcn_conv_GCNConv_propagate_x1.py", "torch_geometric"),
        ("/tmp/torch_geometric.nn.conv.gcn_conv_GCNConv_propagate_x1.py", "torch_geometric"),
        ("contextlib.py", "python"),
        ("concurrent/futures/thread.py", "python"),
        ("/usr/lib/python3.11/contextlib.py", "python"),
        ("<frozen runpy>", "python"),
        ("<string>", "generated"),
        ("<eval_with_key>.3", "generated"),
        ("torch/fx/graph.py:codegen(wrapper)", "generated"),
        (f"/tmp/torchinductor_me/{INDUCTOR}", "generated"),
        (INDUCTOR, "generated"),
        ("tracekit/capture/child/timing.py", "tracekit"),
        ("/opt/lib/python3.11/site-packages/tracekit/capture/child/timing.py", "tracekit"),
        ("/opt/lib/python3.11/site-packages/tracekit/recipes/pathologies/syncs.py", "user"),
        ("tracekit/recipes/gcn_cora.py", "user"),
    ],
)
def test_what_a_path_shows(file, owner):
    assert owner_by_path(file) == Guess(owner)
    assert may_be_the_users(file) is (owner == "user")


@pytest.mark.parametrize(
    "file",
    [
        "torchrun", "/opt/conda/bin/torchrun", "bin/accelerate", "/home/me/.venv/bin/litgpt", r"C:\env\Scripts\pytest",
        "<frozen runpy>", "runpy.py", "ipykernel_launcher.py", "/env/lib/colab_kernel_launcher.py",
    ],
)  # fmt: skip
def test_what_starts_a_script_is_not_the_users(file):
    assert owner_by_path(file) == Guess("python")
    assert not may_be_the_users(file)


def test_a_script_of_that_name_is_the_users():
    assert may_be_the_users("/home/me/bin/train.py")


@pytest.mark.parametrize(
    ("file", "owner"),
    [("gnn/model.py", "gnn"), ("/home/me/gnn/train.py", "/home/me/gnn/train.py"), ("/home/me/train.v2.py", "train")],
)
def test_what_no_path_shows_may_be_the_users(file, owner):
    assert owner_by_path(file) == Guess(owner, is_certain=False)
    assert may_be_the_users(file)


@pytest.mark.parametrize(
    ("mine", "file"),
    [
        ("ours", "ours/model.py"),
        ("/srv", "/srv/lib/python3.11/x.py"),
        ("torch_geometric", "torch_geometric/nn/conv.py"),
    ],
)
def test_what_the_user_says_is_theirs_is(mine, file):
    assert owner_by_path(file, (mine,)) == Guess("user")


def test_only_libraries_have_a_name():
    assert [library(owner) for owner in ("user", "torch", "python", "generated", "tracekit")] == [""] * 5
    assert library("dgl") == "dgl"
