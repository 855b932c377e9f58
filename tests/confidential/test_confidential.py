"""Nothing of a secret is in any face of a confidential report, and the figures stay."""

import base64
import gzip
import io
import json
import re
import zipfile
import zlib
from pathlib import Path

import pyarrow as pa
import pytest
from msgspec import convert, inspect, to_builtins
from real import trace_path

from tests.confidential.people import PEOPLE
from tests.confidential.planted import STEM, filled, secret, write_run, write_trace, write_watch
from tracekit.base.disclosure import confidential
from tracekit.cli import main
from tracekit.confidential import Confidential, public
from tracekit.confidential.names import KINDS
from tracekit.faces.shared.document import as_document, as_json
from tracekit.findings.tried import REMEDIES
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.run import Run
from tracekit.trace import Trace
from tracekit.trace.reading.event_details import COMMUNICATIONS, NOTES
from tracekit.trace.schema import TRACKS
from tracekit.trace.storing import cache
from tracekit.vocabulary.graph_building import graph_builder
from tracekit.vocabulary.kernel_class import kernel_class
from tracekit.vocabulary.lines_file import LinesFile, lines_path
from tracekit.watched.record import Facts

FACES = {
    "text": "report {run} --confidential --full --format text -o {out}/page.txt",
    "html": "report {run} --confidential --full -o {out}/page.html",
    "markdown": "report {run} --confidential --full -o {out}/page.md",
    "latex": "report {run} --confidential --full -o {out}/page.tex",
    "json": "report {run} --confidential -o {out}/page.json",
    "csv": "report {run} --confidential --format csv -o {out}/csv",
    "xlsx": "report {run} --confidential -o {out}/page.xlsx",
    "parquet": "report {run} --confidential --format parquet -o {out}/parquet",
    "speedscope": "report {run} --confidential -o {out}/page.speedscope.json",
    "explain": "explain {run} --confidential --budget-tokens 4000",
    "lines": "lines {run} --confidential --format json",
    "export": "export {run} --confidential -o {out}/tables",
    "plot": "plot {run} --confidential --kind attribution -o {out}/chart.svg",
    "png": "plot {run} --confidential --kind lines -o {out}/chart.png",
}
_BASE64 = re.compile(rb"[A-Za-z0-9+/]{24,}={0,2}")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp(secret())
    return write_run(folder)


def unpacked(content, depth=0):
    """Bytes, and all that is packed or encoded in them."""
    yield content
    if depth > 3:
        return
    if content[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name in archive.namelist():
                yield name.encode()
                yield from unpacked(archive.read(name), depth + 1)
    if content[:2] == b"\x1f\x8b":
        yield from unpacked(gzip.decompress(content), depth + 1)
    if content[:4] == b"PAR1":
        import pyarrow.parquet as pq

        table = pq.read_table(io.BytesIO(content))
        yield json.dumps(table.to_pylist(), default=str).encode()
        yield str(table.schema).encode()
    if content[:4] == b"\x89PNG":
        for found in re.finditer(rb"IDAT", content):
            try:
                yield zlib.decompressobj().decompress(content[found.end() :])
            except zlib.error:
                continue
    for found in _BASE64.findall(content):
        try:
            decoded = base64.b64decode(found, validate=True)
        except ValueError:
            continue
        yield decoded
        yield from unpacked(decoded, depth + 1) if decoded[:2] in (b"PK", b"\x1f\x8b") else ()
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return
    yield re.sub(r"[^a-z]", "", text.lower()).encode()  # whatever stands between the letters: line ends, tags, escapes


def leaks(folder):
    """The secrets in the files of a folder, and in their names."""
    found = set()
    for path in folder.rglob("*"):
        contents = [str(path.relative_to(folder)).encode(), *(unpacked(path.read_bytes()) if path.is_file() else ())]
        found |= {(path.name, word) for content in contents for word in re.findall(STEM.encode() + rb"\w*", content)}
    return found


def drawn(face, run, out, capsys):
    out.mkdir()
    assert (
        main(
            FACES[face].format(run=run, out=out).split(),
        )
        == 0
    ), capsys.readouterr().err
    (out / "stdout").write_text(capsys.readouterr().out)
    assert sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) > 1000


@pytest.mark.parametrize("face", FACES)
def test_no_secret_is_in_a_confidential_face(face, run, tmp_path, capsys):
    drawn(face, run, tmp_path / "out", capsys)
    assert not leaks(tmp_path / "out")


def test_all_that_a_report_hides_is_counted_in_its_note(run):
    hider = Confidential()
    with confidential(hider):
        made = report(open_subject([run]))
        told = [note.text for note in made.notes if note.text.startswith("this report is confidential")]
        as_json(as_document(made))
    assert told == [hider.sentence()]


def test_what_builds_graphs_is_told_by_a_stand_in(run, capsys):
    assert main(["report", str(run), "--confidential", "--full"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert re.search(r"Building graphs takes 600 µs [^:]*: neighbor_list_function_\d+ at file-\d+\.py:\d+", text)


def test_secrets_are_found_where_nothing_is_hidden(run, tmp_path, capsys):
    for face in ("html", "xlsx", "parquet", "speedscope", "csv", "json"):
        out = tmp_path / face
        out.mkdir()
        command = FACES[face].replace("--confidential ", "")
        assert main(command.format(run=run, out=out).split()) == 0
        assert len(leaks(out)) > 5, face


def shown_secrets(value, path=""):
    """Where the secrets are that are left in what was hidden."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from [f"{path}.KEY"] if STEM in str(key) else []
            yield from shown_secrets(one, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for one in value:
            yield from shown_secrets(one, path)
    elif isinstance(value, str) and STEM in value:
        yield path


@pytest.mark.parametrize(
    ("kind", "hide", "left"),
    [
        (Run, Confidential.run, r"\.variants(\.ranks)?\.traces\.\w+|\.variants\.measured\.passes\.trace"),  # are opened
        (Facts, Confidential.watched, r"\.schema|\.job|\.loader"),  # which nobody shows
        (LinesFile, Confidential.lines, r"\.schema|\.code"),  # the kinds of its instructions, which nobody shows
    ],
)
def test_every_text_of_an_input_is_hidden_whatever_is_added_to_it(kind, hide, left):
    value = convert(filled(inspect.type_info(kind)), kind)
    assert len([*shown_secrets(to_builtins(value))]) >= 10
    remains = {*shown_secrets(to_builtins(hide(Confidential(), value)))}
    assert [path for path in remains if not re.fullmatch(left, path)] == []


def test_every_text_beside_the_events_of_a_trace_is_hidden():
    traces, beside = Confidential()._traces, (TRACKS, NOTES, COMMUNICATIONS)
    for schema in beside:
        texts = {field.name: [secret()] for field in schema if field.type == pa.string()}
        assert not [*shown_secrets(traces._table(pa.table(texts)).to_pydict())]


def test_a_bare_trace(tmp_path, capsys):
    path = write_trace(tmp_path / f"{secret()}.json.gz")
    for face in ("text", "html", "json", "xlsx"):
        drawn(face, path, tmp_path / face, capsys)
        assert not leaks(tmp_path / face)


def test_ranks_of_a_job(tmp_path, capsys):
    folder, name = tmp_path / secret(), secret()
    for rank in range(2):
        write_trace(folder / f"{name}_rank{rank}.json.gz", rank=rank)
    for face in ("text", "html", "json", "csv"):
        drawn(face, folder, tmp_path / face, capsys)
        assert not leaks(tmp_path / face)
    assert "2 ranks" in (tmp_path / "text" / "page.txt").read_text()


def test_a_watch(tmp_path, capsys):
    folder = write_watch(tmp_path / secret())
    for face in ("text", "html", "markdown", "latex", "json", "csv", "xlsx", "parquet", "explain"):
        drawn(face, folder, tmp_path / face, capsys)
        assert not leaks(tmp_path / face), face
    text = " ".join((tmp_path / "text" / "page.txt").read_text().split())
    for said in ("1,000 steps of a program", "torch 2.13.0", "trace at step 300", "is not a record of tracekit.watch"):
        assert said in text
    assert re.search(r"of them in function-\d+ at /file-\d+\.py:8", text)
    out = tmp_path / "shown"
    out.mkdir()
    assert main(["report", str(folder), "--full", "-o", str(out / "page.html")]) == 0
    assert len(leaks(out)) > 20  # of those, some are in the trace


def test_all_that_the_report_of_a_watch_hides_is_counted_in_its_note(tmp_path):
    hider = Confidential()
    with confidential(hider):
        made = report(open_subject([write_watch(tmp_path / secret())]))
        told = [note.text for note in made.notes if note.text.startswith("this report is confidential")]
        as_json(as_document(made))
    assert told == [hider.sentence()]


ASKED = [
    *((name, {}) for name in ("overview", "findings", "lines", "compare", "query")),
    *(("evidence", {"of": of}) for of in ("v1.f1", "v1.e3", "v1.s2", "v1.wall", "v9.wall")),
    ("lines", {"where": "model.py"}),
    ("query", {"table": "events"}),
    ("query", {"sql": "select * from events limit 50"}),
    ("query", {"sql": "select cast(name as int) from events where name <> 'aten::add'"}),
]


def answered(root, name, **arguments):
    """What an agent gets."""
    server = pytest.importorskip("tracekit.agent.server", reason="needs the extra mcp")
    tools = {tool.name: tool for tool in server.Settings(root).tools.values()}
    return server._called(server.Workplace(root), tools, name, arguments, 60_000).content[0].text


@pytest.mark.parametrize("made", [write_run, write_watch], ids=["run", "watch"])
def test_no_secret_is_in_an_answer_to_an_agent(made, tmp_path):
    root = tmp_path / secret()
    input_ = made(root / "a").relative_to(root)
    with confidential(Confidential()):
        answers = [answered(root, name, inputs=[str(input_)], **more) for name, more in ASKED]
    assert not [answer for answer in answers if STEM in answer]
    assert STEM in answered(root, "lines", inputs=[str(input_)])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"variants": []}, "a/run.json is not a run that this version can read (it holds no variants)."),
        ({"steps": secret()}, "a/run.json is not a run that this version can read"),
        ({"device": [secret()]}, "a/run.json is not a run that this version can read"),
        ({"planned": secret(), "schema": f"tracekit.run/{secret()}"}, "a/run.json is not a"),
        (f"/{secret()}/x.json", "a/run.json is not a run that this version can read (the trace /file-"),
        (f"../{secret()}.json", "a/run.json is not a run that this version can read (the trace package-"),
    ],
)
def test_what_an_agent_is_told_of_a_run_that_cannot_be_read_quotes_nothing(change, said, tmp_path):
    root = tmp_path / secret()
    path = write_run(root / "a")
    document = json.loads(path.read_text())
    if isinstance(change, str):
        document["variants"][0]["traces"]["steady"] = change
    path.write_text(json.dumps(document | (change if isinstance(change, dict) else {})))
    with confidential(Confidential()):
        answer = answered(root, "overview", inputs=["a/run.json"])
    assert said in answer
    assert STEM not in answer


def test_an_agent_is_not_told_where_the_root_is(tmp_path):
    root = tmp_path / secret()
    root.mkdir()
    (root / "bad.json").write_text("{}")
    with confidential(Confidential()):
        for name, said in (("../x", "../x is not below the root"), ("bad.json", "bad.json is not a PyTorch profiler")):
            answer = answered(root, "overview", inputs=[name])
            assert said in answer
            assert STEM not in answer
    assert STEM in answered(root, "overview", inputs=["../x"])


def test_a_trace_whose_cached_events_are_damaged_is_hidden_once(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("TRACEKIT_NO_CACHE", raising=False)
    monkeypatch.setattr(cache, "WORTH_BYTES", 0)
    monkeypatch.setattr(cache, "_SMALLEST", 0)
    path = write_trace(tmp_path / "trace.json.gz")

    def names():
        with confidential(Confidential()):
            return Trace.load(path).names

    read = names()
    (entry,) = (tmp_path / "cache").rglob("events.columns")
    entry.write_bytes(entry.read_bytes()[::-1])
    assert names() == read


def test_what_was_computed_of_a_recording_before_is_not_shown(tmp_path, monkeypatch, capsys):
    """Of a capture, often only the recording with stacks is large enough for the cache."""
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("TRACEKIT_NO_CACHE", raising=False)
    path = write_run(tmp_path / "run")
    document = json.loads(path.read_text()) | {"script": "profile.py"}  # as one of Python's is called, so it is shown
    for variant in document["variants"]:
        if variant["traces"]:
            steady = path.parent / variant["traces"]["steady"]
            detail = write_trace(steady.with_name("detail.json.gz"), steps=12)
            recorded = json.loads(gzip.decompress(detail.read_bytes()))
            events = [event for event in recorded["traceEvents"] if event.get("cat") != "python_function"]
            steady.write_bytes(gzip.compress(json.dumps(recorded | {"traceEvents": events[:140]}).encode()))
            lines = lines_path(detail)
            graphless = json.loads(gzip.decompress(lines.read_bytes())) | {"graphs": []}
            lines.write_bytes(gzip.compress(json.dumps(graphless).encode()))
            variant["traces"]["detail"] = str(detail.relative_to(path.parent))
    path.write_text(json.dumps(document))
    monkeypatch.setattr(cache, "_SMALLEST", 0)
    monkeypatch.setattr(cache, "WORTH_BYTES", 60_000)  # between the sizes of the two
    plain = tmp_path / "plain"
    assert main(["report", str(path), "-o", f"{plain}.json"]) == 0
    drawn("json", path, tmp_path / "out", capsys)
    assert [*(tmp_path / "cache").rglob("lines-*")]
    assert not leaks(tmp_path / "out")
    assert main(["report", str(path), "-o", f"{plain}-again.json"]) == 0
    assert Path(f"{plain}-again.json").read_text() == Path(f"{plain}.json").read_text()


def document_of(path, filter_=None):
    if filter_ is None:
        return as_document(report(open_subject([path])))
    with confidential(filter_):
        return json.loads(as_json(as_document(report(open_subject([path])))))


def figures(value, key=""):
    """All numbers of a document, in order, without those that a run's own parameters have."""
    if isinstance(value, dict):
        for name, one in value.items():
            if name not in ("params", "environment"):
                yield from figures(one, name)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from figures(one, key)
    elif isinstance(value, int | float) and not isinstance(value, bool) and key != "first":
        yield value


REAL = ("leimao_eager_rtx5080", "luatil_compile_rtx3060", "compile_cold_cpu", "kineto_resnet50_v100_dataloader4")
REAL += ("amd_mi300x_replay", "pyg_attentivefp_a100", "dtu_resnet18_cpu", "param_dlrm_v100_rank0")


@pytest.mark.parametrize("name", REAL)
def test_figures_of_real_traces_stay(name):
    path = trace_path(name)
    shown, plain = document_of(path, Confidential()), json.loads(as_json(document_of(path)))
    assert [*figures(shown)] == [*figures(plain)]


@pytest.mark.parametrize("name", REAL)
def test_nothing_remains_of_where_real_traces_were_recorded(name):
    path = trace_path(name)
    text = json.dumps(document_of(path, Confidential()))
    assert not re.search(r"/(?:home|root|mnt|Users|opt|workspace|data)/", text)
    assert str(path) not in text
    assert name not in text
    original = gzip.decompress(path.read_bytes()).decode(errors="replace")
    users = set(re.findall(r"/(?:home|Users)/([\w.-]+)", original))
    assert not [user for user in users if re.search(rf"\b{re.escape(user)}\b", text)]
    assert not re.search(r"0x[0-9a-f]{6,}", text)


def test_stand_ins_are_the_same_in_two_reports(run):
    one, other = (json.dumps(document_of(run, Confidential())) for _ in range(2))
    assert one == other


def test_what_is_public_stays_and_what_is_replaced_is_counted(run, tmp_path, capsys):
    assert main(["report", str(run), "--confidential", "--full"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for name in ("aten::mm", "cudaLaunchKernel", "eager", "torch 2.13.0"):
        assert name in text
    assert re.search(r"this report is confidential: it shows stand-ins for .*\d+ files, .*\d+ functions", text)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--format", "perfetto", "-o", "x.json.gz"], "cannot hide anything in --format perfetto"),
        (["--hta"], "cannot hide anything in what HTA says"),
        (["--compile-log", "log"], "cannot hide anything in a compile log"),
        (["--workers", "2"], "cannot hide anything in what other processes read"),
    ],
)
def test_what_cannot_be_hidden_is_refused(options, why, run, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log").mkdir()
    assert main(["report", str(run), "--confidential", *options]) == 1
    said = capsys.readouterr()
    assert why in said.err
    assert said.err.count("\n") == 1
    assert not said.out
    assert not [path for path in tmp_path.iterdir() if path.name != "log"]


def test_no_list_of_public_words_has_people():
    assert not PEOPLE & (public.names("message words") | public.names("kernel words"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_stand_in_of_a_kernel_keeps_its_kind(kind):
    assert kernel_class(f"kernel-1_{KINDS[kind]}") == kind


def test_parameters_that_advice_is_about_are_known():
    assert {key for remedy in REMEDIES for key in remedy.keys} == public.PARAMETERS


def test_names_of_public_packages_are_known():
    assert {"GCNConv", "Linear", "SAGEConv", "DataLoader"} <= public.names("classes")
    assert public.is_class("AddmmBackward0")
    assert not public.is_class("AcmeBackward0")
    hidden, shown = Confidential(), []
    for category, name in (
        ("kernel", "ampere_sgemm_128x64_tn"),
        ("kernel", "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >(float)"),
        ("python_function", "torch/nn/modules/module.py(1518): _call_impl"),
        ("python_function", "nn.Module: GCNConv_3"),
        ("cpu_op", "aten::scatter_add_"),
        ("user_annotation", "Optimizer.step#AdamW.step"),
    ):
        shown.append(hidden._names.of(category, name) == name)
    assert all(shown)


@pytest.mark.parametrize(
    "name",
    [
        f"<string>(5): {STEM}",
        f"<stdin>(1): {STEM}",
        f"code.py(3): {STEM}",  # as one of Python's is called
        f"test/{STEM}.py(1): step",
        f"site-packages/torch/nn/../../../../home/{STEM}/x.py(3): step",
        f"torch_geometric/nn/../../{STEM}/x.py(3): step",
        f"lib/python3.11/json/../../../{STEM}.py(3): step",
        f"<frozen {STEM}>(1): step",
    ],
)
def test_frames_of_what_only_looks_public_are_hidden(name):
    assert STEM not in Confidential()._names.of("python_function", name)


INSTALLED = "/home/acme/env/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("category", "name", "shown"),
    [
        ("user_annotation", "graph building", "graph building"),
        ("cpu_op", "torch_cluster::fps", "torch_cluster::fps"),
        ("cpu_op", "torch_sparse::acme_relabel", "torch_sparse::relabel_operator_1"),
        ("cpu_op", "torchmdnet::get_neighbor_pairs_acme", "torchmdnet::get_neighbor_pairs_operator_1"),
        ("python_function", "/home/acme/data.py(12): radius_graph", "/file-1.py(12): radius_graph"),
        ("python_function", "/home/acme/data.py(12): neighbor_list_of_acme", None),
        (
            "python_function",
            "/home/acme/data.py(12): neighbor_sampler_of_acme",
            "/file-1.py(12): neighbor_sampler_function_1",
        ),
        ("python_function", "/home/acme/fairchem/graphs.py(3): generate_graph", None),
        (
            "python_function",
            f"{INSTALLED}/ase/neighborlist.py(3): update",
            "site-packages/ase/neighborlist.py(3): update",
        ),
        ("python_function", f"{INSTALLED}/acme/graphs.py(3): get_neighbor_list", None),
        ("python_function", "acme.py(7): torch_dynamo_resume_in_knn_graph_at_9", None),
    ],
)
def test_what_builds_a_graph_is_still_known_to(category, name, shown):
    assert graph_builder(name) is not None
    hidden = Confidential()._names.of(category, name)
    assert graph_builder(hidden) is not None
    assert "acme" not in hidden
    assert shown in (None, hidden)


@pytest.mark.parametrize(
    ("category", "name", "shown"),
    [
        ("python_function", "Python GC", "Python GC"),
        ("python_function", "<built-in function collect>", "<built-in function collect>"),
        ("cpu_op", "fallback_function", "fallback_function"),
        ("cpu_op", "TensorExpr", "TensorExpr"),
        ("python_function", "/home/acme/data.py(12): AcmeCollator", "/file-1.py(12): collate_function_1"),
        ("user_annotation", "## Backward ##", "## Backward ##"),
        ("user_annotation", "backward of acme", "backward annotation-1"),
        ("user_annotation", "(B) acme 3", "(B) annotation-1"),
        ("user_annotation", "zero_grad", "zero_grad"),
        ("user_annotation", "backwardacme", "annotation-1"),
        ("user_annotation", "FSDP::pre_forward (acme.0)", "FSDP::pre_forward annotation-1"),
        ("user_annotation", "FSDP::acme", "annotation-1"),
        ("user_annotation", "FullyShardedDataParallel.forward", "FullyShardedDataParallel.forward"),
        (
            "cpu_op",
            "torch.distributed.ddp.reducer::copy_bucket_to_grad",
            "torch.distributed.ddp.reducer::copy_bucket_to_grad",
        ),
        ("cpu_op", "torch.distributed.ddp.reducer::acme", "library-1::operator-1"),
    ],
)
def test_what_findings_know_by_its_name_is_still_known(category, name, shown):
    assert Confidential()._names.of(category, name) == shown


def test_a_frame_is_no_span_in_which_a_graph_is_built():
    assert Confidential()._names.of("cpu_op", f"/home/{STEM}/x.py(3): radius_graph") == "operator-1"


def test_functions_of_pythons_library_stay():
    for name in ("threading.py(973): _bootstrap", "<frozen os>(3): walk", "lib/python3.11/json/decoder.py(3): decode"):
        assert Confidential()._names.of("python_function", name) == name


def test_an_address_is_no_name_of_a_library():
    for name in ("10.0.0.5", "node alpha", "", "node@alpha"):
        assert not public.is_of_libraries(name)
    assert Confidential()._names.of("cpu_op", "aten::10.0.0.5") == "aten::operator-1"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("connect to 10.12.3.4:29500 failed", "connect to address-1:29500 failed"),
        ("fe80:0:1a2b::3c4d and aa:bb:cc:dd:ee:ff", "address-1 and address-2"),
        ("id 123e4567-e89b-12d3-a456-426614174000", "id address-1"),
        ("___check_obj_id(L['self'], 140212345678912)", "___check_obj_id(L['name_1'], address-1)"),
        ("host gpu-node-7 down", "host host-1 down"),
        ("root@node: node-alpha.internal", "host-1: host-2"),
        ("localhost:29500 failed", "host-1 failed"),
        ("python train --token 12345 -user=root", "python train option-1 option-2"),
        ("No such file: '/data/graph list/of names.csv'", "No such file: '/file-1'"),
        ("KeyError: 'name'", "KeyError: 'name_1'"),
        ("Alice of Google and bob", "name-1 of name-2 and name-3"),
        ("L['self'] == 'graph'  # return graph(node)", "L['name_1'] == 'name_2'  # …"),
        (
            "L['self'].size()[0] == 4  # return graph(node)  # /home/me/x.py:3 in forward",
            "L['name_1'].size()[0] == 4  # …  # /file-1.py:3 in forward",
        ),
        ('from File "/home/me/x.py", line 7, in step\n    return graph(node)', None),
        ("expected 1.5e-05, actual [4, 512] of 2.13.0", "expected 1.5e-05, actual [4, 512] of 2.13.0"),
        ("expected 'float32'", "expected 'float32'"),
        ("no record of tracekit.watch: tracekit.run/1", "no record of tracekit.watch: tracekit.run/1"),
        ("Write one with prof.export_chrome_trace('trace.json.gz').",) * 2,
        ("tracekit.secret and 'trace.json.gz.old'", "name_1.name_2 and 'file-1.gz.name_3'"),
    ],
)
def test_what_messages_quote_is_hidden(said, shown):
    assert Confidential().text(said) == (shown or 'from File "/file-1.py", line 7, in step')


def test_stand_ins_stay_in_a_text_that_has_some():
    hidden = Confidential()
    once = hidden.text("gpu-node-7 and root@node")
    assert hidden.text(once) == once
    assert hidden.text("host-3") == "host-3"  # it was a secret, and its stand-in is called the same


def test_a_trace_that_cannot_be_read_is_not_named(tmp_path, capsys):
    folder = tmp_path / "graph of nodes" / ("node" * 40)
    write_trace(folder / "steady.json.gz")
    (folder / "list of names.json").write_text("{}")
    (folder / "kernel list.json.gz").write_bytes(b"\x1f\x8b but not")
    assert main(["report", str(folder), "--confidential", "--full"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "is not a PyTorch profiler trace" in text
    assert not re.search("graph of|nodenode|list of names|kernel list", text)


def test_every_file_is_itself_under_all_of_its_names():
    places = Confidential()._places
    assert places.path("train.py") == "file-1.py"
    assert places.path("/home/me/work/train.py") == "/file-1.py"
    assert places.path("/srv/other/train.py") == "/file-2.py"
    assert places.path("/x/site-packages/torch/nn/functional.py") == "site-packages/torch/nn/functional.py"
    assert places.path("/home/me/torch/secret/train.py").startswith("/torch/file-")
    assert Path(places.path("/home/me/model.ipynb")).suffix == ".ipynb"


def test_what_is_made_of_public_words_is_hidden_where_it_is_the_users(tmp_path):
    path = write_run(tmp_path)
    document = json.loads(path.read_text())
    document["environment"] |= {"hostname": "gpu-node-alpha", "address": "10.0.0.5", "user": "linear"}
    document["environment"]["variables"] = {"CUDA_VISIBLE_DEVICES": "node:3", "MASTER_ADDR": "10.0.0.5"}
    document |= {"data": "graph index", "recipe": "softmax", "params": {"kernel": "attention", "batch": 64}}
    document["variants"][0]["metrics"] = {"fused attention": 1.0, "test accuracy": 0.5}
    path.write_text(json.dumps(document))
    shown = document_of(path, Confidential())
    text = json.dumps(shown["run"])
    for word in ("node", "alpha", "10.0.0.5", "linear", "graph index", "softmax", "attention", "MASTER_ADDR"):
        assert word not in text, word
    assert re.fullmatch(r"\{'parameter-\d+': 'value-\d+', 'batch': 64\}", str(shown["run"]["params"]))
    metrics = next(variant["measured"]["metrics"] for variant in shown["variants"] if variant["name"] == "eager")
    assert sorted(metrics) == ["metric-1", "test accuracy"]


def test_stand_ins_in_code_are_identifiers():
    hidden = Confidential()
    assert hidden.text("L['self'].acme_depth == 5") == "L['name_1'].name_2 == 5"
    assert hidden.text('File "/home/acme/run.py", line 7, in acme') == 'File "/file-1.py", line 7, in function-1'
    assert hidden.text("tensor 'L['acme']' size mismatch at index 0. expected 4, actual 5") == (
        "tensor 'L['name_3']' size mismatch at index 0. expected 4, actual 5"
    )
    assert hidden._names.of("python_function", "<built-in function acme_sum>") == "<built-in function function_2>"
