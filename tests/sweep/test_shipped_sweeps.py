"""The sweep files beside the recipes: what they expand to, and that every recipe accepts their parameters."""

import ast
from pathlib import Path

import pytest

from tracekit.capture.options import plan_variants
from tracekit.study.store import text_of
from tracekit.sweep import cells, read_sweep

SWEEPS = sorted((Path(__file__).parents[2] / "recipes" / "sweeps").glob("*.toml"))


def declared(recipe, name):
    """A literal that a recipe declares, read without running the recipe."""
    for node in ast.parse(recipe.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            pairs = zip(node.value.keys, node.value.values, strict=True)
            return {key.value: _literal(value) for key, value in pairs if key is not None}
    return {}


def _literal(node):
    try:
        return ast.literal_eval(node)
    except ValueError:
        return {} if isinstance(node, ast.Dict) else ""


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.stem)
def test_each_cell_can_be_planned(path):
    every = cells(read_sweep(path))
    for cell in every:
        recipe = (path.parent / cell.program).resolve()
        params, variants = declared(recipe, "PARAMS"), declared(recipe, "VARIANTS")
        assert set(cell.params) <= set(params), cell
        assert plan_variants(
            [cell.variant], {**params, **{k: text_of(v) for k, v in cell.params.items()}}, variants, "inductor"
        )


def test_the_grid_of_the_study_has_the_cells_that_its_comment_counts():
    path = next(path for path in SWEEPS if path.stem == "gnn_compile_bench")
    every = cells(read_sweep(path))
    trainings = [cell for cell in every if cell.workload == "training"]
    in_dgl = sum(cell.labels["framework"] == "dgl" for cell in trainings)
    counted = f"{len(trainings)} trainings, {len(trainings) - in_dgl} in PyG and {in_dgl} in DGL"
    assert counted in " ".join(path.read_text().split())
    assert f"{len(every)} cells" in path.read_text()
    assert len({cell.variant for cell in every}) == 1 + 4 * 3  # eager, and every mode with every kind of dynamic shapes
