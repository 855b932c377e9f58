"""Rows in which variants can be compared although lines were fused in one of them."""

from tracekit.lines.owners import SourceLine
from tracekit.report.owner_costs import rows

A, B, C, D = (SourceLine("f.py", number, "f") for number in (1, 2, 3, 4))


def test_a_group_worth_it_joins_its_lines():
    row_of = rows([{(A,): 50.0, (B,): 30.0, (C,): 20.0}, {(A, B): 60.0, (C,): 40.0}])
    assert row_of == {(A,): (A, B), (B,): (A, B), (A, B): (A, B), (C,): (C,)}


def test_a_small_group_is_a_row_of_its_own():
    row_of = rows([{(A,): 50.0, (B,): 50.0}, {(A, B): 0.5, (A,): 99.5}])
    assert row_of == {(A,): (A,), (B,): (B,), (A, B): (A, B)}


def test_rows_that_share_a_line_merge():
    row_of = rows([{(A, B): 10.0, (B, C): 10.0, (D,): 1.0}])
    assert row_of == {(A, B): (A, B, C), (B, C): (A, B, C), (D,): (D,)}


def test_a_small_group_inside_a_row_belongs_to_it():
    row_of = rows([{(A, B, C): 99.0, (A, B): 0.5}])
    assert row_of[(A, B)] == (A, B, C)


def test_what_is_nobodys_stays_nobodys():
    assert rows([{(): 5.0, (A, B): 5.0}])[()] == ()


def test_rows_add_up():
    costs = {(A,): 5.0, (B, C): 3.0, (C,): 2.0, (): 1.0}
    row_of = rows([costs])
    total: dict = {}
    for group, ns in costs.items():
        total[row_of[group]] = total.get(row_of[group], 0) + ns
    assert sum(total.values()) == sum(costs.values())
