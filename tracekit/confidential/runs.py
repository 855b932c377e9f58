"""A run without its secrets: recipe, data, parameters, environment, and what the compiler and exceptions said; and what
a watch says of a process.
"""

import re
from typing import Any, get_args

import msgspec
from msgspec.structs import replace

from tracekit.confidential import public
from tracekit.confidential.places import Places
from tracekit.confidential.prose import Prose
from tracekit.confidential.stand_ins import StandIns
from tracekit.run import Outcome, Run, Window, Workload
from tracekit.run.ledger import Ledger
from tracekit.vocabulary.event_names import COMPILE_SPANS
from tracekit.watched.record import Facts

_VERSION = re.compile(r"v?\d+(?:\.\d+){1,3}(?:(?:a|b|rc|\.post|\.dev)\d+)?(?:\+(?:cpu|cu\d+|rocm[\d.]+|xpu))?|\d+")
_UNITS = re.compile(r"-?\d+(?:\.\d+)?(?: ?(?:W|MHz|GHz|MiB|GiB|GB|MB|C|%|s|ms))?")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.+-]+")
# What settings of torch.compile, and variants that are called after them, consist of.
_SETTINGS = re.compile(
    r"(?:eager|compiled|inference|inductor|aot_eager|cudagraphs|default|reduce-overhead|max-autotune(?:-no-cudagraphs)?"
    r"|onnxrt|tvm|openxla|dynamic|static|fullgraph|amp|bf16|fp16|fp32|tf32|norm|off|on|true|false|[-_ =0-9])+"
)
_DEVICE = re.compile(r"(?:cpu|cuda|xpu|mps|hip|npu|hpu|mtia)(?::\d+)?")
# By the key, which texts stay: words of tracekit's own, and known values.
_STAYING = {
    "outcome": re.compile("|".join(get_args(Outcome))),
    "workload": re.compile("|".join(get_args(Workload))),
    "clock": re.compile("cuda events|perf_counter"),
    "stage": re.compile("inspect|measure|live|profile|check|train|audit"),
    **dict.fromkeys(("mode", "backend"), _SETTINGS),
    **dict.fromkeys(("torch", "torch_geometric", "triton", "numpy", "msgspec", "python", "tracekit"), _VERSION),
    **dict.fromkeys(("cuda", "hip", "cupti", "driver_version", "capability"), _VERSION),
    "schema": re.compile(r"tracekit\.run/\d+"),
    "created": _TIME,
    "device": _DEVICE,
    "float32_matmul_precision": re.compile("highest|high|medium"),
    "cpu_capability": re.compile(r"DEFAULT|NO AVX|AVX\w{0,4}|SVE\d*|VSX|Z VECTOR"),
    "cpu_governor": re.compile("performance|powersave|ondemand|conservative|schedutil|userspace"),
    "persistence_mode": re.compile("Enabled|Disabled"),
    "pstate": re.compile(r"P\d+"),
}
_MACHINE = {"environment", "gpu"}  # whose other texts are hidden, whatever they say
_VARIABLES = re.compile(
    r"(?:TORCH|PYTORCH|CUDA|NVIDIA|CUBLAS|CUDNN|NCCL|OMP|MKL|KMP|GLOO|TRITON|ROCM|HIP|HSA|KINETO)_?.*"
)
_METRIC_WORDS = """
    1 10 5 acc accuracy ap auc error eval f1 loss macro mae micro mse perplexity precision recall rmse roc score
    test top train val validation
"""
_PATHS = ("traces", "ranks", "trace")  # which are opened, and shown by nobody
_WINDOWS = ("", "warmup", *get_args(Window))


class Runs:
    """Replaces what is secret in runs, and in the records of watches."""

    def __init__(self, stand_ins: StandIns, places: Places, prose: Prose) -> None:
        self._stand_ins, self._places, self._prose = stand_ins, places, prose

    def variant(self, name: str) -> str:
        """What stands for the name of a variant."""
        return name if _SETTINGS.fullmatch(name) else self._stand_ins.of("variant", name)

    def hidden(self, run: Run) -> Run:
        """A run without its secrets, but with the paths of its traces, which are opened."""
        variants = [
            replace(
                msgspec.convert(self._value(msgspec.to_builtins(variant), ("variants",)), type(variant)),
                name=self.variant(variant.name),
                ledger=self._ledger(variant.ledger),
            )
            for variant in run.variants
        ]
        rest = self._value(msgspec.to_builtins(replace(run, variants=[])), ())
        return replace(
            msgspec.convert(rest, Run), variants=variants, planned=[self.variant(name) for name in run.planned]
        )

    def watched(self, facts: Facts) -> Facts:
        """What a watch says of a process, without its script."""
        return replace(
            facts,
            script="",
            device=self._text_of(facts.device, "device", ()),
            device_name=public.device(facts.device_name, self._stand_ins),
            clock=self._text_of(facts.clock, "clock", ()),
            step=self._prose.of(facts.step),
            versions={
                name: self._version(version)
                for name, version in facts.versions.items()
                if name == "python" or name in public.PACKAGES
            },
        )

    def _ledger(self, ledger: Ledger) -> Ledger:
        """What the compiler did, with stand-ins in what it says."""
        text, path, function = self._prose.of, self._places.path, self._places.function

        def said(words: str | None) -> str | None:
            return None if words is None else text(words)

        def place(file: str | None) -> str | None:
            return None if file is None else path(file)

        return replace(
            ledger,
            compiles=[
                replace(
                    one,
                    id=public.compile_id(one.id, self._stand_ins),
                    span=one.span and self._phase(one.span),
                    during=one.during if one.during in _WINDOWS else self._stand_ins.of("window", one.during),
                    reason=said(one.reason),
                    guard=said(one.guard),
                    failed=said(one.failed),
                    code=None if one.code is None else self._prose.place(one.code),
                    phases={self._phase(name): ns for name, ns in one.phases.items()},
                )
                for one in ledger.compiles
            ],
            breaks=[
                replace(
                    one,
                    compile=public.compile_id(one.compile, self._stand_ins),
                    reason=text(one.reason),
                    file=place(one.file),
                    stack=self._prose.stack(one.stack),
                )
                for one in ledger.breaks
            ],
            limits=[
                replace(
                    one,
                    file=place(one.file),
                    name=None if one.name is None else function(one.file or "", one.name),
                    reason=said(one.reason),
                )
                for one in ledger.limits
            ],
            skips=[
                replace(
                    one,
                    compile=None if one.compile is None else public.compile_id(one.compile, self._stand_ins),
                    reason=text(one.reason),
                    file=place(one.file),
                )
                for one in ledger.skips
            ],
        )

    def _phase(self, name: str) -> str:
        is_known = name == "other" or name in COMPILE_SPANS or public.is_phase(name)
        return name if is_known else self._stand_ins.of("phase", name)

    def _value(self, value: Any, keys: tuple[str, ...]) -> Any:
        """A part of a run, by the keys that lead to it."""
        key = keys[-1] if keys else ""
        if isinstance(value, dict):
            if key == "params":
                return {self._parameter(name): self._setting(name, one) for name, one in value.items()}
            if key == "options":  # of torch.compile
                return {self._option(name): self._setting(name, one) for name, one in value.items()}
            if key == "metrics":
                return {self._metric(name): one for name, one in value.items()}
            if key in ("node_types", "edge_types"):
                return {self._stand_ins.of("type", name): one for name, one in value.items()}
            if key == "variables":
                return {
                    name: self._setting("", one)
                    for name, one in value.items()
                    if _VARIABLES.fullmatch(name) and public.is_of_libraries(name)
                }
            if key == "packages":
                return {
                    name: self._version(one) for name, one in value.items() if name.replace("-", "_") in public.PACKAGES
                }
            if key == "ledger":
                return {}
            if self._is_opened(keys):
                return value
            return {self._key(name, keys): self._value(one, (*keys, name)) for name, one in value.items()}
        if isinstance(value, list):
            return value if self._is_opened(keys) else [self._value(one, keys) for one in value]
        return self._text_of(value, key, keys) if isinstance(value, str) else value

    @staticmethod
    def _is_opened(keys: tuple[str, ...]) -> bool:
        return bool(keys) and keys[-1] in _PATHS and not _MACHINE.intersection(keys)

    def _key(self, name: str, keys: tuple[str, ...]) -> str:
        if not _MACHINE.intersection(keys):
            return name
        return name if public.is_of_libraries(name) or self._prose.of(name) == name else self._stand_ins.of("key", name)

    def _metric(self, name: str) -> str:
        is_known = set(re.split(r"[\W_]+", name.lower())) <= {*_METRIC_WORDS.split()}
        return name if is_known else self._stand_ins.of("metric", name)

    def _text_of(self, text: str, key: str, keys: tuple[str, ...]) -> str:
        if self._is_opened(keys) or not text:
            return text
        if key in _STAYING:
            return text if _STAYING[key].fullmatch(text) else self._stand_ins.of("value", text)
        if key == "recipe":
            return self._stand_ins.of("program", text)
        if key == "script":
            return self._places.path(text)
        if key == "data":
            return self._stand_ins.of("data", text)
        if key == "cpu" or (key == "name" and _MACHINE.intersection(keys)):
            return public.device(text, self._stand_ins)
        if key == "platform":
            system = text.partition("-")[0]
            return system if system in ("Linux", "macOS", "Windows", "Darwin") else self._stand_ins.of("value", text)
        if _MACHINE.intersection(keys):
            return text if _UNITS.fullmatch(text) else self._stand_ins.of("value", text)
        return self._prose.of(text)

    def _parameter(self, name: str) -> str:
        return name if name in public.PARAMETERS else self._stand_ins.of("parameter", name)

    def _option(self, name: str) -> str:
        return name if public.is_of_libraries(name) else self._stand_ins.of("option", name)

    def _setting(self, name: str, value: Any) -> Any:
        """A value of the user's: what is neither a switch nor nothing is hidden, but for numbers of public names."""
        is_public = name in public.PARAMETERS and isinstance(value, int | float)
        return (
            value if value is None or isinstance(value, bool) or is_public else self._stand_ins.of("value", str(value))
        )

    def _version(self, text: Any) -> str:
        return text if isinstance(text, str) and _VERSION.fullmatch(text) else self._stand_ins.of("value", str(text))
