"""From a sweep file to cells: what is combined, left out, and refused."""

import pytest

from tests.study.planting import sweep_file
from tracekit.errors.capturing import NoSuchRecipeError, SweepFileError
from tracekit.sweep import cells, read_sweep


def grid(tmp_path, text):
    return cells(read_sweep(sweep_file(tmp_path, text)))


def test_every_combination_is_a_cell_and_variants_vary_fastest(tmp_path):
    every = grid(
        tmp_path,
        '[sweep]\nrecipes = ["net.py"]\nseeds = [0, 1]\nworkloads = ["training", "inference"]\n'
        '[sweep.params]\nmodel = ["gcn", "gat"]\nsized = [true]\n',
    )
    assert len(every) == 2 * 2 * 2 * 2
    assert [(cell.seed, cell.variant) for cell in every[:4]] == [
        (0, "eager"),
        (0, "compiled"),
        (1, "eager"),
        (1, "compiled"),
    ]
    assert len({cell.key for cell in every}) == len({cell.folder for cell in every}) == len(every)
    assert every[0].setting == {
        "recipe": "net", "interpreter": "", "workload": "training", "model": "gcn", "sized": "true",
    }  # fmt: skip


def test_a_grid_beyond_all_time_is_refused_before_it_is_made(tmp_path):
    axes = "".join(f"{name} = {[*range(100)]}\n" for name in "abcdefgh")
    with pytest.raises(SweepFileError, match="it asks for 20,000,000,000,000,000 cells, more than 100,000"):
        grid(tmp_path, f'[sweep]\nrecipes = ["net.py"]\n[sweep.params]\n{axes}')


def test_nesting_without_end_is_refused(tmp_path):
    with pytest.raises(SweepFileError, match="it is not TOML"):
        grid(tmp_path, f"x = {'[' * 100_000}")


def test_grids_take_what_they_do_not_say_from_the_sweep(tmp_path):
    every = grid(
        tmp_path,
        '[sweep]\nrecipes = ["net.py"]\nvariants = ["eager"]\n[sweep.params]\nmodel = ["gcn", "gat"]\n'
        '[[sweep.grid]]\n[[sweep.grid]]\nscripts = ["net.py"]\narguments = ["--fast"]\nparams = { lr = [0.5] }\n',
    )
    assert [(cell.script, cell.params) for cell in every] == [
        (False, {"model": "gcn"}), (False, {"model": "gat"}), (True, {"lr": 0.5}),
    ]  # fmt: skip
    assert every[-1].script_arguments == ["--fast", "--lr=0.5"]


def test_cells_are_left_out_by_any_axis(tmp_path):
    text = (
        '[sweep]\nrecipes = ["net.py"]\nvariants = ["eager", "compiled:dynamic=true", "max-autotune"]\n'
        '[sweep.params]\nmodel = ["gcn", "gat", "gin"]\n'
        '[[sweep.exclude]]\nmodel = ["gat", "gin"]\nmode = "max-autotune"\n'
        '[[sweep.exclude]]\ndynamic = true\nmodel = "gcn"\n'
    )
    left = [(cell.params["model"], cell.variant) for cell in grid(tmp_path, text)]
    assert ("gat", "max-autotune") not in left
    assert ("gcn", "compiled:dynamic=true") not in left
    assert len(left) == 9 - 2 - 1


def test_the_same_cell_in_two_grids_is_one(tmp_path):
    assert len(grid(tmp_path, '[sweep]\nrecipes = ["net.py"]\n[[sweep.grid]]\n[[sweep.grid]]\nseeds = [0, 1]\n')) == 4


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[sweep", "is not TOML"),
        ("[swep]\n", "unknown field `swep`"),
        ("[sweep]\n", "it runs nothing"),
        ('[sweep]\nrecipes = ["nowhere.py"]\n', "there is no file nowhere.py"),
        ('[sweep]\nrecipes = ["net.py"]\nseed = [1]\n', "unknown field `seed`, at sweep"),
        ('[sweep]\nrecipes = ["net.py"]\nseeds = []\n', "at sweep.seeds"),
        ('[sweep]\nrecipes = ["net.py"]\n[sweep.options]\nsteps = 0\n', "at sweep.options.steps"),
        ('[sweep]\nrecipes = ["net.py"]\n[sweep.params]\nmodel = "gcn"\n', "at sweep.params"),
        ('[sweep]\nrecipes = ["net.py"]\nworkloads = ["dreaming"]\n', "at sweep.workloads"),
    ],
)
def test_what_is_wrong_with_a_sweep_file_is_named(tmp_path, text, sentence):
    with pytest.raises(SweepFileError, match="is not a sweep file") as caught:
        grid(tmp_path, text)
    assert sentence in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(NoSuchRecipeError):
        read_sweep(tmp_path / "none.toml")
