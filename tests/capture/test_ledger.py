"""The compile ledger agrees with the trace: the same compilations, on the same clock."""

from statistics import median

from tracekit.capture.compiler import CompileRecorder
from tracekit.compile_log.ledger import StepStart, ledger, total_ns
from tracekit.compile_log.log import LimitHit, LogEntry, Span


def lines_of(recipe):
    return recipe.read_text().splitlines()


def test_every_compilation_of_the_trace_is_in_the_ledger_with_its_id_and_thread(profiled, broken):
    for each in (profiled, broken):
        in_trace = [(span.id, span.thread) for span in each.cold.spans]
        assert in_trace == [(entry.id, entry.thread) for entry in each.compiled_cold]
    assert [span.id for span in profiled.cold.spans] == ["0/0", "0/0"]  # forward and backward
    assert {span.id for span in broken.cold.spans} >= {"0/0", "0/1", "0/2", "1/0"}


def test_ledger_and_trace_share_a_clock(profiled, broken):
    pairs = [pair for each in (profiled, broken) for pair in zip(each.compiled_cold, each.cold.spans, strict=True)]
    assert median(abs(entry.start_ns - span.start) for entry, span in pairs) < 1_000_000
    assert median(abs(entry.end_ns - span.end) for entry, span in pairs) < 1_000_000


def test_compilation_is_nearly_all_of_the_first_step(profiled):
    start, end = profiled.cold.steps[0]
    compiling = sum(span.end - span.start for span in profiled.cold.spans if start <= span.start < end)
    assert compiling >= 0.85 * (end - start)


def test_a_change_of_shape_is_one_recompilation_with_its_guard(profiled):
    again = [entry for entry in profiled.ledger.compiles if entry.kind == "recompile"]
    assert [(entry.id, entry.frame, entry.attempt, entry.step, entry.during) for entry in again] == [
        ("0/1", 0, 1, 6, "warmup")
    ]
    assert again[0].guard == "tensor 'x' size mismatch at index 0. expected 6, actual 9"
    assert again[0].reason == f"0/0: {again[0].guard}"
    assert again[0].failed is None


def test_a_compilation_names_the_users_function(profiled, recipe):
    at = lines_of(recipe).index("    def forward(self, x):") + 1
    assert {entry.code for entry in profiled.ledger.compiles} == {f"{recipe}:{at} forward"}


def test_phases_add_up_to_the_compilation(profiled):
    for entry in profiled.ledger.compiles:
        assert sum(entry.phases.values()) == entry.end_ns - entry.start_ns
        assert all(ns > 0 for ns in entry.phases.values())


def test_a_graph_break_is_said_with_its_line_each_time_it_is_compiled(broken, recipe):
    at = next(n for n, line in enumerate(lines_of(recipe), 1) if "# breaks here" in line)
    assert [each.compile for each in broken.ledger.breaks] == [f"0/{attempt}" for attempt in range(8)]
    assert {(each.file, each.line) for each in broken.ledger.breaks} == {(str(recipe), at)}
    broke = broken.ledger.breaks[0]
    assert "Tensor.item()" in broke.reason
    assert broke.stack.splitlines()[0].strip().startswith(f'File "{recipe}"')
    assert "# breaks here" in broke.stack
    assert "tracekit" not in broke.stack


def test_the_recompile_limit_is_recorded_and_turns_into_a_note(broken, recipe):
    at = lines_of(recipe).index("    def forward(self, x):") + 1
    (limit,) = broken.ledger.limits
    assert (limit.file, limit.line, limit.frame, limit.name) == (str(recipe), at, 0, "forward")
    assert limit.reason.startswith("0/7: self.calls == 7")
    stopped = [(entry.id, entry.failed) for entry in broken.ledger.compiles if entry.failed]
    assert stopped == [("0/8", "recompile_limit reached")]
    assert broken.effective.notes == [
        f"forward ({recipe}:{at}) reached the recompile limit and ran eagerly from then on"
    ]


def test_compilations_that_overlap_count_once():
    spans = [Span("dynamo", "0/0", 1, 0, 10), Span("dynamo", "1/0", 2, 5, 12), Span("dynamo", "2/0", 1, 20, 21)]
    assert total_ns(spans) == 13
    assert total_ns([]) == 0


def recorded(*spans, **more):
    recorder = CompileRecorder()
    recorder.compiled = [*spans]
    for name, value in more.items():
        setattr(recorder, name, value)
    return recorder


def test_entries_are_placed_in_steps_and_passes():
    spans = [
        Span("dynamo", "0/1", 1, 25, 30),
        Span("dynamo", "0/0", 1, 5, 8),
        Span("CUDAGraphNode.record", "0/0", 1, 12, 13),
    ]
    starts = [StepStart(10, 0, "cold"), StepStart(20, 1, "steady")]
    entries = ledger(recorded(*spans), starts).compiles
    assert [(entry.kind, entry.step, entry.during) for entry in entries] == [
        ("first", None, ""),
        ("cudagraph", 0, "cold"),
        ("recompile", 1, "steady"),
    ]


def test_the_failing_guard_is_told_without_its_comment():
    reason = (
        "0/0: self.k == 0                    # self.k += 1  # train.py:11 in forward (HINT: make it a tensor)\n"
        'User stack trace:\n  File "train.py", line 11, in forward\n    self.k += 1'
    )
    (entry,) = ledger(recorded(Span("dynamo", "0/1", 1, 0, 1), reasons={"0/1": [reason]}), []).compiles
    assert entry.guard == "self.k == 0"
    assert entry.reason == "0/0: self.k == 0  # self.k += 1  # train.py:11 in forward"


def test_a_break_that_skips_the_whole_function_finds_its_line_too():
    text = (
        "Graph break: torch.compile cannot properly resume from this graph break, which results in a skip.\n"
        "The graph break occurred in the following user code:\n"
        '  File "train.py", line 3, in outer\n    inner()\n  File "train.py", line 7, in inner\n    print()\n'
    )
    (broke,) = ledger(recorded(breaks=[LogEntry("0/0", 5, text)]), []).breaks
    assert (broke.file, broke.line) == ("train.py", 7)
    assert broke.reason.startswith("Graph break: torch.compile cannot properly resume")


def test_a_break_of_torch_2_6_is_read_too():
    text = (
        "Graph break in user code at train.py:7\nReason: Unsupported: Tensor.item\nUser code traceback:\n"
        '  File "train.py", line 7, in forward\n    x.item()\n\nTraceback (most recent call last):\n  File "torch.py"'
    )
    (broke,) = ledger(recorded(breaks=[LogEntry("0/0", 5, text)]), []).breaks
    assert (broke.line, broke.reason) == (7, "Unsupported: Tensor.item")
    assert broke.stack == '  File "train.py", line 7, in forward\n    x.item()'


def test_a_break_counts_each_time_that_its_frame_is_compiled_again():
    text = "Graph break in user code at train.py:7\nGraph Break Reason: print\n\nUser code traceback:\n"
    notes = [LogEntry("0/0", 5, text), LogEntry("0/1", 6, text), LogEntry("1/0", 7, text)]
    assert [each.compile for each in ledger(recorded(breaks=notes), []).breaks] == ["0/0", "0/1", "1/0"]


def test_an_id_of_compiled_autograd_keeps_its_numbers():
    (entry,) = ledger(recorded(Span("dynamo", "!0/2/0", 1, 0, 1)), []).compiles
    assert (entry.id, entry.frame, entry.attempt) == ("!0/2/0", 2, 0)


def test_a_compilation_stopped_by_the_limit_says_so():
    hit = LimitHit("0/8", 1, "recompile_limit", "forward", "train.py", 3, "0/7: k == 7   # x")
    made = ledger(recorded(Span("dynamo", "0/8", 1, 0, 2), limits=[hit]), [])
    assert made.compiles[0].failed == "recompile_limit reached"
    assert made.limits[0].reason == "0/7: k == 7  # x"
