"""Every verb that prints figures prints them for programs, too: one object that says what its columns mean."""

from __future__ import annotations

import json
from typing import Any

import pytest
from small import kernel, launch, op, step, training, write

from tracekit.capture import doctor
from tracekit.cli import main
from tracekit.errors.asking import NeedsPackageError
from tracekit.hta import needed


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main([*arguments, "--format", "json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert document["schema"] == f"tracekit.{arguments[0].replace('-', '_')}/1"
    return document


def tables(document: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The rows of each table by the names of its columns, each of which has a meaning."""
    found = {}
    for block in document["blocks"]:
        if block["kind"] == "table":
            assert all({"name", "unit", "meaning", "role"} == {*column} for column in block["columns"])
            names = [column["name"] for column in block["columns"]]
            found[block["name"]] = [dict(zip(names, row, strict=True)) for row in block["rows"]]
    return found


def test_what_if(tmp_path, capsys):
    events = []
    for number in range(4):
        at = 101.0 * number
        events += [step(number, at, at + 100), op("aten::mm", at, at + 100), launch(at + 50, at + 55, number + 1)]
        events.append(kernel("gemm", at + 54, at + 94, number + 1))
    document = printed(capsys, "what-if", str(write(tmp_path / "eager.json", *events)))
    (rows,) = tables(document).values()
    assert rows
    assert all(0 <= row["best_ns"] <= row["worst_ns"] for row in rows)
    (units,) = ({c["name"]: c["unit"] for c in block["columns"]} for block in document["blocks"] if "columns" in block)
    assert (units["best_ns"], units["gain"]) == ("ns", "share")


def test_lines_has_all_rows(capsys):
    (rows, *_) = tables(printed(capsys, "lines", "sample", "--rows", "1")).values()
    assert len(rows) > 1


def test_explain(tmp_path, capsys):
    path = str(training(tmp_path / "eager.json"))
    (block,) = printed(capsys, "explain", path)["blocks"]
    assert main(["explain", path]) == 0
    assert block["lines"] == capsys.readouterr().out.splitlines()


def test_cache(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    path = training(tmp_path / "eager.json")
    main(["what-if", str(path)])
    capsys.readouterr()
    (rows,) = tables(printed(capsys, "cache")).values()
    assert all(row["size_bytes"] > 0 for row in rows)


def test_doctor_by_either_option(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "CHECKS", doctor.CHECKS[:1])
    document = printed(capsys, "doctor")
    main(["doctor", "--json"])
    assert {*json.loads(capsys.readouterr().out)} == {*document}


def test_hta(tmp_path, capsys):
    try:
        needed()
    except NeedsPackageError as error:
        pytest.skip(str(error))
    path = str(training(tmp_path / "eager.json"))
    found = tables(printed(capsys, "hta", path, "gpu-kernel-breakdown", "--rows", "1"))
    assert all(rows for rows in found.values())
