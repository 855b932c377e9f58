"""HTA's frames as tables: meaningful indices become columns, and so do levels."""

import pandas as pd

from tracekit.hta.tables import as_table, with_names


def test_an_index_that_only_counts_is_left_out():
    frame = pd.concat([pd.DataFrame({"stream": [7]}), pd.DataFrame({"stream": [20]})])
    assert as_table(frame).to_pydict() == {"stream": [7, 20]}


def test_levels_become_one_name():
    frame = pd.DataFrame({"rank": [0, 0], "stream": [7, 7], "length": [1, 3]}).groupby(["rank", "stream"]).describe()
    table = as_table(frame)
    assert table.column_names[:4] == ["rank", "stream", "length_count", "length_mean"]
    assert table["length_mean"].to_pylist() == [2.0]


def test_numbers_and_text_in_one_column_are_text():
    assert as_table(pd.DataFrame({"pid": [0, "Spans", None]})).to_pydict() == {"pid": ["0", "Spans", None]}


def test_numbers_of_names_and_categories_become_what_they_stand_for():
    frame = pd.DataFrame({"cat": [1, 0], "s_name": ["mm", "add"], "e_cat": [-1, 1], "stream": [0, 1]})
    named = as_table(with_names(frame, ["cpu_op", "kernel"])).to_pydict()
    assert named == {"cat": ["kernel", "cpu_op"], "s_name": ["mm", "add"], "e_cat": [None, "kernel"], "stream": [0, 1]}


def test_levels_of_columns_are_left_as_they_are():
    frame = pd.DataFrame({("name", "count"): [3]})
    assert as_table(with_names(frame, ["kernel"])).to_pydict() == {"name_count": [3]}
