"""What is read of an input – a trace, its lines file, a run, the record of a watch – without its secrets."""

from collections.abc import Collection

from msgspec.structs import replace

from tracekit.confidential import public
from tracekit.confidential.names import Names
from tracekit.confidential.places import Places
from tracekit.confidential.prose import Prose
from tracekit.confidential.runs import Runs
from tracekit.confidential.stand_ins import StandIns
from tracekit.confidential.traces import Traces
from tracekit.run import Run
from tracekit.trace import Trace
from tracekit.vocabulary.code_owner import GENERATED, PYTHON, TORCH, TRACEKIT, USER
from tracekit.vocabulary.lines_file import LinesFile
from tracekit.watched.record import Facts

_OWNERS = (USER, TORCH, PYTHON, GENERATED, TRACEKIT)


class Confidential:
    """Replaces the secrets of all inputs of a report: the same one everywhere by the same stand-in."""

    def __init__(self, mine: Collection[str] = ()) -> None:
        """`mine` are packages that are the user's, whatever they are called."""
        self._stand_ins = StandIns()
        self._places = Places(self._stand_ins, mine)
        self._names = Names(self._stand_ins, self._places)
        self._prose = Prose(self._stand_ins, self._places)
        self._traces = Traces(self._stand_ins, self._names)
        self._runs = Runs(self._stand_ins, self._places, self._prose)

    def sentence(self) -> str:
        """What was replaced, and how much of it."""
        counted = self._stand_ins.counted()
        if not counted:
            return "this report is confidential, but nothing had to be replaced."
        return f"this report is confidential: it shows stand-ins for {counted}."

    def name(self, name: str) -> str:
        """What stands for the name of an event of a trace that was read."""
        return self._names.known(name)

    def place(self, file: str, function: str) -> tuple[str, str]:
        """What stands for a file of source, and for a function in it."""
        return self._places.path(file), self._places.function(file, function)

    def path(self, path: object) -> str:
        """What stands for the path of an input."""
        return self._stand_ins.of("trace", str(path))

    def text(self, text: str) -> str:
        """A sentence without its secrets."""
        return self._prose.of(text)

    def trace(self, trace: Trace) -> Trace:
        """A trace without its secrets."""
        return self._traces.hidden(trace)

    def run(self, run: Run) -> Run:
        """A run without its secrets, but with the paths of its traces, which are opened."""
        return self._runs.hidden(run)

    def watched(self, facts: Facts) -> Facts:
        """What a watch says of a process, without its secrets."""
        return self._runs.watched(facts)

    def lines(self, lines: LinesFile) -> LinesFile:
        """A lines file in which all lines of source are empty."""
        path, function = self._places.path, self._places.function
        return replace(
            lines,
            python="",
            functions=[
                one._replace(
                    name=self._names.of("python_function", one.name),
                    file=path(one.file),
                    function=function(one.file, one.function),
                    owner=self._owner(one.owner),
                )
                for one in lines.functions
            ],
            callers=[(path(file), function(file, name)) for file, name in lines.callers],
            code=[replace(one, file=path(one.file), function=function(one.file, one.function)) for one in lines.code],
            sources={path(file): "…\n" * len(text.splitlines()) for file, text in lines.sources.items()},
            graphs=[
                graph._replace(
                    key=self._names.graph(graph.key),
                    compile=public.compile_id(graph.compile, self._stand_ins),
                    kernels=[
                        (self._kernel_of_graph(name), [self._prose.stack(stack) for stack in stacks])
                        for name, stacks in graph.kernels
                    ],
                )
                for graph in lines.graphs
            ],
            modules={
                self._names.module(name): self._stand_ins.of("module", value) for name, value in lines.modules.items()
            },
        )

    def _kernel_of_graph(self, name: str) -> str:
        """`name:handle`: the name of a kernel or, with points, of an operator."""
        kernel, colon, handle = name.rpartition(":")
        kernel = kernel if colon else name
        if "." in kernel:
            shown = kernel if public.is_of_libraries(kernel) else self._stand_ins.of("operator", kernel)
        else:
            shown = self._names.of("kernel", kernel)
        return f"{shown}{colon}{handle if handle.isdecimal() else ''}" if colon else shown

    def _owner(self, owner: str) -> str:
        return owner if owner in _OWNERS or owner in public.PACKAGES else self._stand_ins.of("package", owner)
