"""The server by the SDK's own client, which validates every answer against the tool's schema."""

import json
import os
import sys

import pytest
from jsonschema import Draft202012Validator
from small import training

from tracekit.agent.budget import DEFAULT, LEAST
from tracekit.installed import python_path

try:
    import mcp
    from mcp.client.stdio import StdioServerParameters

    from tracekit.agent.server import Settings, make_server
except ModuleNotFoundError:
    pytest.skip("needs the extra mcp", allow_module_level=True)

OF = ("v1.f1", "v1.e9", "v1.s12", "v2.host.dispatch", "gpu_gap", "sync_stall")
CALLS = [
    ("overview", {}),
    ("overview", {"inputs": ["sample"]}),
    ("overview", {"inputs": ["trace.json"]}),
    ("overview", {"inputs": ["sample"], "only": "notes", "offset": 1}),
    ("findings", {"inputs": ["sample"], "variant": "compiled"}),
    ("findings", {"inputs": ["trace.json"]}),
    ("compare", {"inputs": ["sample"], "view": "host"}),
    ("compare", {"inputs": ["trace.json", "sample"]}),
    ("lines", {"inputs": ["sample"]}),
    ("lines", {"inputs": ["trace.json"]}),
    ("lines", {"inputs": ["sample"], "where": "gcn_cora.py"}),
    *(("evidence", {"inputs": ["sample"], "of": of}) for of in OF),
    ("query", {"inputs": ["sample"]}),
    ("query", {"inputs": ["sample"], "table": "kernels"}),
    ("query", {"inputs": ["sample"], "sql": "select name, dur_ns from events order by dur_ns desc"}),
    (
        "query",
        {"inputs": ["sample"], "sql": "select 1e400::double as inf, 'NaN'::double as nan from tracks"},
    ),
]
REFUSED = [
    ("overview", {"inputs": ["missing.json"]}, "no such file"),
    ("overview", {"inputs": ["../outside.json"]}, "is not below"),
    ("overview", {"inputs": ["https://example.com/t.json"]}, "is not below"),
    ("overview", {"inputs": "sample"}, "do not suit overview"),
    ("overview", {"inputs": ["sample"], "only": "lines"}, "only is one of"),
    ("findings", {"inputs": ["sample"], "variant": "v9"}, "refers to nothing"),
    ("findings", {}, "do not suit findings"),
    ("compare", {"inputs": ["trace.json"]}, "a single variant"),
    ("evidence", {"inputs": ["sample"], "of": "v1.e999999999"}, "refers to nothing"),
    ("evidence", {"inputs": ["sample"], "of": "v1.wall.sync"}, "the buckets of the wall view"),
    ("query", {"inputs": ["sample"], "sql": "select nothing from events"}, "The query failed"),
    ("query", {"inputs": ["sample"], "sql": "select * from tracks, read_csv('/etc/passwd')"}, "The query failed"),
    ("audit", {"program": "train.py"}, "the tools are"),
    ("capture", {"program": "train.py"}, "the tools are"),
]


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    folder.mkdir()
    training(folder / "trace.json")
    training(tmp_path / "outside.json")
    return folder


@pytest.fixture
def client(root):
    return mcp.Client(make_server(Settings(root)))


async def test_every_answer_fits_its_schema_and_its_budget(client):
    async with client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        for name, arguments in CALLS:
            result = await client.call_tool(name, arguments)
            assert not result.is_error, (name, arguments, result.content[0].text)
            text = result.content[0].text
            assert len(text.encode()) <= DEFAULT
            assert json.loads(text) == result.structured_content
            Draft202012Validator(tools[name].output_schema).validate(result.structured_content)
            assert result.structured_content["next"]
            for call in result.structured_content["next"]:
                Draft202012Validator(tools[call["tool"]].input_schema).is_valid(call["arguments"])


async def test_each_list_alone_fits_its_schema(client):
    asked = {"evidence": {"of": "v1.f1"}, "compare": {"inputs": ["trace.json", "./trace.json"]}}
    async with client:
        for tool in (await client.list_tools()).tools:
            for only in filter(None, tool.input_schema["properties"]["only"]["enum"]):
                arguments = {"inputs": ["trace.json"], **asked.get(tool.name, {}), "only": only}
                result = await client.call_tool(tool.name, arguments)  # the client validates it
                assert not result.is_error, (tool.name, only)
                assert result.structured_content["next"]


async def test_an_error_is_a_result_of_one_sentence(client):
    async with client:
        for name, arguments, sentence in REFUSED:
            result = await client.call_tool(name, arguments)
            assert result.is_error
            assert sentence in json.loads(result.content[0].text)["untrusted"]["text"], (name, arguments)


async def test_tools_that_only_read_say_so_and_are_at_most_seven(client, root):
    async with client:
        reading = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert client.instructions is not None
        assert "never instructions" in client.instructions
    assert list(reading) == ["overview", "findings", "compare", "lines", "evidence", "query"]
    async with mcp.Client(make_server(Settings(root, allow_run=True))) as other:
        tools = {tool.name: tool.annotations for tool in (await other.list_tools()).tools}
    assert set(tools) - set(reading) == {"audit", "capture"}
    for name, annotations in tools.items():
        reads = name in reading
        assert (annotations.read_only_hint, annotations.idempotent_hint) == (reads, reads)
        assert (annotations.destructive_hint, annotations.open_world_hint) == (not reads, not reads)


async def test_a_second_question_does_not_read_again(client, root, monkeypatch):
    from tracekit.agent import inputs

    opened = []
    monkeypatch.setattr(inputs, "open_subject", lambda paths, **k: opened.append(paths) or original(paths, **k))
    from tracekit.profile import open_subject as original

    async with client:
        for name in ("overview", "findings", "lines"):
            await client.call_tool(name, {"inputs": ["trace.json"]})
        assert len(opened) == 1
        training(root / "trace.json", steps=6)
        answer = await client.call_tool("overview", {"inputs": ["trace.json"]})
        assert len(opened) == 2
        assert len(answer.structured_content["variants"][0]["steps"]) == 6


async def test_it_serves_over_standard_input_and_output(root):
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "tracekit", "mcp", "--root", str(root), "--max-bytes", str(LEAST)],
        env={**os.environ, "PYTHONPATH": python_path()},
    )
    async with mcp.Client(command) as client:
        result = await client.call_tool("overview", {"inputs": ["trace.json"]})
        assert result.structured_content["variants"][0]["device"] == "gpu"
        assert len(result.content[0].text.encode()) <= LEAST


WIDE = ", ".join(f"dur_ns as column_{k}" for k in range(700))


@pytest.mark.parametrize("most_bytes", [LEAST, DEFAULT])
async def test_whatever_is_asked_the_answer_fits(root, most_bytes):
    long = "/* " + "why " * 1500 + "*/"
    queries = [
        "select list(name) as names from events, range(99)",
        "select range(20000) as numbers",
        "select {'names': list(name)} as struct, map([1], [list(name)]) as map from events, range(99)",
        f"{long} select * from events",
        f"select {WIDE} from events",
        "select range(3000000) as numbers",
    ]
    texts = []
    async with mcp.Client(make_server(Settings(root, budget=most_bytes))) as client:
        for sql in queries:
            result = await client.call_tool("query", {"inputs": ["trace.json"], "sql": sql})
            texts.append(result.content[0].text)
            assert len(texts[-1].encode()) <= most_bytes, sql
            assert result.is_error == (sql in queries[-2:]), sql
        result = await client.call_tool("overview", {"😀" * 900: 1})
        assert result.is_error
        assert len(result.content[0].text.encode()) <= most_bytes
        many = ["./" * 2000 + "trace.json", "trace.json"]
        result = await client.call_tool("overview", {"inputs": many})
        assert not result.is_error
        assert len(result.content[0].text.encode()) <= most_bytes
    assert "…" in texts[0]
    assert json.loads(texts[3])["rows"][0]["untrusted"]["dur_ns"]
    assert "Ask for less in each" in texts[4]
    assert "MiB: select less" in texts[5]
