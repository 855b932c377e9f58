"""What is claimed, by what kind of evidence, and which tests would fail if it were not so."""

from __future__ import annotations

from msgspec import Struct


class Claim(Struct, frozen=True):
    """A sentence about tracekit, and the tests that hold it: folders, files, or functions in them.

    `thorough` marks what takes too long for the quick set.
    """

    id: str
    says: str
    tests: tuple[str, ...]
    thorough: bool = False


BY_TWIN = (
    Claim(
        "contract",
        "Each rule of [the contract](attribution.md) gives the buckets worked out by hand, in engine and twin.",
        ("tests/engine/test_attribution.py::test_known_answer", "tests/engine/test_cases.py"),
    ),
    Claim(
        "attribution",
        "On any trace, every nanosecond of a step is in one bucket, and each bucket is that of a naive twin, which "
        "asks of every stretch of time which events run. Neither the order of events nor the size of blocks matters.",
        (
            "tests/engine/test_attribution.py::test_twin_on_any_trace",
            "tests/engine/test_attribution.py::test_engine_on_any_trace",
            "tests/engine/test_attribution.py::test_moments_of_any_trace",
        ),
    ),
    Claim(
        "replay",
        "A replay from which nothing is removed is the recording; without a cause, it is what a naive twin says.",
        ("tests/engine/test_replay.py",),
    ),
    Claim(
        "possible",
        "No finding and no what-if promises more than the remaining work allows.",
        ("tests/analyses/test_nothing_impossible.py",),
    ),
    Claim(
        "owners",
        "Every nanosecond has an owner, a line or what else takes it, and a slow twin agrees.",
        ("tests/lines/test_ownership.py",),
    ),
    Claim(
        "ranks",
        "Lateness is followed through collectives to the rank that began it, as a twin does nanosecond by nanosecond.",
        ("tests/ranks/test_causes.py",),
    ),
    Claim(
        "reading",
        "The reader gives the same events whether in C or in Python, in whatever pieces and order a file comes; broken "
        "bytes never end in a traceback.",
        (
            "tests/trace/test_native.py",
            "tests/trace/test_pieces.py",
            "tests/trace/test_in_order.py",
            "tests/trace/test_fuzz.py",
        ),
    ),
    Claim(
        "laws",
        "Each law of a trace fires on a trace that breaks it, and on no whole one.",
        ("tests/trace/test_laws.py",),
    ),
    Claim(
        "columns",
        "Loops in C, lanes of the timeline and memory in use are those of a loop in Python.",
        ("tests/native", "tests/timeline/test_lane.py", "tests/profile/test_walk.py"),
    ),
    Claim(
        "ends of steps",
        "The compiled watch notes of each step, on the host's clock and on a GPU's, what Python notes.",
        ("tests/watching/test_tally_twin.py", "tests/watching/test_tally_clock.py"),
    ),
)

WORLDS = Claim(
    "worlds", "Rates in worlds whose causes are known.", ("tests/world/test_rates.py::test_the_rates_do_not_fall",)
)
DAMAGE = Claim(
    "damage",
    "A report of a damaged world claims no more than the truth.",
    ("tests/world/test_damage.py::test_no_more_is_claimed_than_before",),
)
DAMAGED_TRACES = Claim(
    "damaged traces",
    "A report of a damaged real trace claims no more than that of the whole one.",
    ("tests/world/test_damage.py::test_no_more_is_claimed_of_damaged_real_traces",),
    thorough=True,
)
WHAT_IF = Claim("what-if", "In worlds, the true gain is in the range of what-if.", ("tests/world/test_what_if.py",))

TRACES = Claim(
    "traces",
    "Every bucket of a real trace is that of the twin.",
    ("tests/engine/test_attribution.py::test_engine_on_real_trace",),
)
SAMPLES = Claim(
    "samples",
    "Every bucket of a trace that comes with tracekit is that of the twin.",
    ("tests/engine/test_attribution.py::test_engine_on_sample_trace",),
)
FIRST_FINDINGS = Claim(
    "first findings",
    "The verdict on a real trace is what people concluded from the raw events.",
    ("tests/findings/test_first_findings.py::test_the_verdict_is_the_one_that_the_raw_events_tell",),
)
BY_FORMAT = (
    Claim(
        "torch 2.15",
        "A recording by both exporters of PyTorch 2.15 is read alike.",
        ("tests/trace/test_torch_2_15.py",),
    ),
    Claim(
        "Nsight Systems",
        "A recording has the same buckets as Kineto and as Nsight Systems write it.",
        ("tests/trace/test_nsys.py",),
    ),
    Claim("old runs", "Runs that versions 0.1.0 and 0.2.0 wrote open in every face.", ("tests/run/test_old_runs.py",)),
)

BY_CAPTURE = (
    Claim(
        "simulated",
        "On simulated machines that drift, are disturbed and change their speed, intervals and checks are as sure as "
        "they say.",
        ("tests/test_promises.py",),
        thorough=True,
    ),
    Claim(
        "planted lines",
        "Lines whose work is timed by the script itself cost what they take, backward included.",
        ("tests/lines/test_planted_costs.py",),
    ),
    Claim(
        "as plain",
        "Under a capture, Dynamo traces what it traces without one.",
        ("tests/capture/test_as_plain.py",),
    ),
    Claim(
        "ledger",
        "The ledger of compilations agrees with the trace, and with what is known of the simplest recipe.",
        ("tests/capture/test_ledger.py", "tests/capture/test_gcn_cora.py"),
    ),
    Claim(
        "files",
        "No file of yours is altered or lost, whenever a capture is killed.",
        ("tests/capture/test_killed.py", "tests/capture/test_files_of_scripts.py"),
    ),
    Claim(
        "emulated",
        "What a capture asks of a GPU is right, on one that PyTorch only believes to exist.",
        ("tests/capture/test_emulated.py", "tests/capture/test_lost_kernels.py", "tests/capture/test_gpu_state.py"),
    ),
    Claim(
        "audit",
        "An audit finds the planted waits, copies and crashes in unchanged scripts.",
        ("tests/capture/test_audit.py", "tests/capture/test_audit_notices.py"),
    ),
    Claim(
        "watch",
        "Slow steps that are planted in a watched training are caught with their cause, on clocks that are set; its "
        "record can be read after a kill.",
        ("tests/watching/test_planted_steps.py", "tests/watching/test_watch.py"),
    ),
    Claim(
        "watched in real time",
        "So they are in real time, and where one of two ranks is late. Of steps in which nothing is planted, at most "
        "one in 10,000 is called slow.",
        ("tests/verify/test_watched_trainings.py", "tests/verify/test_quiet_loops.py"),
        thorough=True,
    ),
    Claim(
        "workers",
        "A wait for a batch is told by the worker and the line that made it, or by what else delayed it.",
        ("tests/loading/test_causes.py", "tests/findings/test_late_batches.py", "tests/watching/test_late_batches.py"),
    ),
    Claim(
        "agents",
        "Of planted causes, the first two answers to an agent name cause and line; recorded text is marked in all.",
        ("tests/agent/test_planted_causes.py", "tests/agent/test_untrusted.py"),
    ),
    Claim(
        "scripts",
        "Training scripts in the style of well-known examples, captured unchanged, train and compile as they do in a "
        "plain run.",
        ("tests/verify/test_scripts.py",),
        thorough=True,
    ),
)

H100 = Claim(
    "H100",
    "In recordings whose cause was known when they were made, the first finding is that cause.",
    ("tests/findings/test_on_an_h100.py",),
)
PAIRS = Claim(
    "pairs", "What is foretold of a step stays near what was seen on an H100.", ("tests/analyses/test_true_pairs.py",)
)

CLAIMS = (
    *(*BY_TWIN, WORLDS, DAMAGE, DAMAGED_TRACES, WHAT_IF),
    *(TRACES, SAMPLES, FIRST_FINDINGS, *BY_FORMAT),
    *(*BY_CAPTURE, H100, PAIRS),
)
