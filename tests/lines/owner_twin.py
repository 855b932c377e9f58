"""A slow second implementation of the owner rules, moment by moment, for a trace with stacks."""

import numpy as np

from tracekit.engine.buckets import KEYS
from tracekit.lines.owners import PHASES
from tracekit.trace.roles import BACKWARD_FRAME, BACKWARD_NODE, KERNEL, OPERATOR, PYTHON
from tracekit.trace.schema import values
from tracekit.vocabulary.graph_building import graph_builder


class Twin:
    """One trace; `of` answers for a moment. Frames are classified by a function of their names."""

    def __init__(self, attribution, recording):
        trace, frames = attribution.trace, recording.frames
        roles = trace.roles
        self.trace, self.attribution = trace, attribution
        names = [trace.names[code] for code in trace.name_codes.tolist()]
        columns = (trace.ts_ns, trace.end_ns, trace.track, roles.kind, roles.annotation, trace.correlation)
        columns += (values(trace.events["sequence"], -1), values(trace.events["fwd_thread"], 0))
        rows = zip(*(column.tolist() for column in columns), strict=True)
        self.events = [(row, name, *each) for row, (name, each) in enumerate(zip(names, rows, strict=True))]
        self.of_thread = {track: [e for e in self.events if e[4] == track] for track in trace.threads.driving}
        self.frames = frames
        self.users = [e for e in self.of_thread.get(trace.threads.main, ()) if e[5] == PYTHON and frames.of(e[1]).line]
        base, lines = trace.meta.get("baseTimeNanoseconds", 0), recording.lines
        calls = zip(lines.call_start_ns, lines.call_line, strict=True) if lines else ()
        begun = {e[2] for e in self.of_thread.get(trace.threads.main, ())}
        self.calls = sorted(((start - base, line) for start, line in calls if start - base in begun), reverse=True)
        self.marks = {}  # by track: when, and the line then
        for mark in lines.marks if lines else ():
            caller, line = lines.mark_places[mark.place] if mark.place >= 0 else (0, 0)
            place = (lines.callers[caller][0], line) if mark.place >= 0 else None
            tids = trace.tracks["tid"].to_pylist()
            self.marks.setdefault(tids.index(str(mark.thread)), []).append((mark.ns - base, place))
        self.gpu = [e for e in self.events if roles.gpu[e[0]] and e[3] > e[2]]
        self.communication = {e[0] for e in self.gpu if roles.communication[e[0]]}
        table = attribution.segments.to_pylist()
        self.views = {view: [row for row in table if row["view"] == view] for view in ("wall", "host")}

    def launch(self, row):
        return int(self.trace.links.launch(np.array([row]))[0])

    def main(self, t):
        """File and line of the user's innermost frame, and whether the main thread runs forward or backward."""
        main = self.trace.threads.main
        if main in self.marks:
            live = [e for e in self.of_thread[main] if e[5] == PYTHON and e[2] <= t < e[3]]
            return self.marked(main, t), self.phase(t, live)
        live = [e for e in self.of_thread[main] if e[5] == PYTHON and e[2] <= t < e[3]]
        frames = [e for e in self.users if e[2] <= t < e[3]]
        if not frames:
            return None, self.phase(t, live)
        frame = max(frames, key=lambda e: (e[2], -e[3]))
        function = self.frames.of(frame[1]).line
        return (function.file, self.called_on(frame, t) or function.line), self.phase(t, live)

    def marked(self, track, t):
        """The line that was marked last on a thread; none before the first mark, and after the last."""
        marks = self.marks[track]
        if t >= marks[-1][0]:
            return None
        return max(((number, place) for number, (at, place) in enumerate(marks) if at <= t), default=(0, None))[1]

    def called_on(self, frame, t):
        """The line of the last call that a frame has made; None before the first."""
        for start, line in self.calls:
            if frame[2] < start <= t:
                around = [e for e in self.users if e[2] < start < e[3]]
                if max(around, key=lambda e: (e[2], -e[3])) is frame:
                    return line
        return None

    def phase(self, t, live):
        around = [e for e in self.of_thread[self.trace.threads.main] if e[6] and e[2] <= t < e[3]]
        live_events = [e for e in self.of_thread[self.trace.threads.main] if e[2] <= t < e[3]]
        if any(graph_builder(e[1]) for e in live_events):
            return "graph building"
        if any(e[1].startswith("enumerate(DataLoader)") for e in around):
            return "data"
        if any(e[1].startswith("Optimizer.") for e in around):
            return "optimizer"
        if any(BACKWARD_FRAME.fullmatch(e[1]) for e in live):
            return "backward"
        modules = [
            e for e in live if e[1].startswith("nn.Module: ") and not e[1].startswith("nn.Module: OptimizedModule")
        ]
        if not modules:
            return "other"
        outermost = min(modules, key=lambda e: (e[2], -e[3]))
        numbered = any(
            e[5] == OPERATOR and e[8] >= 0 and outermost[2] <= e[2] < outermost[3]
            for e in self.of_thread[self.trace.threads.main]
        )
        return "forward" if numbered else "eval"

    def thread(self, track, t):
        """The owner of a moment of a driving thread."""
        if track not in self.of_thread:
            return self.main(t)
        nodes = [e for e in self.of_thread[track] if BACKWARD_NODE.fullmatch(e[1]) and e[3] > e[2]]
        live = [e for e in nodes if e[2] <= t < e[3]]
        if not live:
            return self.main(t)
        if track in self.marks:  # code of the user's that runs in a node
            outermost = min(live, key=lambda e: (e[2], -e[3]))
            called = self.marked(track, outermost[2]) if track == self.trace.threads.main else None
            if (own := self.marked(track, t)) not in (None, called):
                return own, "backward"
        node = max(live, key=lambda e: (e[2], -e[3]))
        while (forward := self.forward(node)) is None:
            before = [e for e in nodes if (e[2], -e[3]) < (node[2], -node[3])]
            if not before:
                return self.main(max(live, key=lambda e: (e[2], -e[3]))[2])[0], "backward"
            node = max(before, key=lambda e: (e[2], -e[3]))
        return self.main(forward[2])[0], "backward"

    def forward(self, node):
        for track in self.trace.threads.driving:
            events = self.of_thread[track]
            nodes = [e for e in events if BACKWARD_NODE.fullmatch(e[1]) and e[3] > e[2]]
            fitting = [
                e
                for e in events
                if e[5] == OPERATOR
                and not e[6]
                and e[8] == node[8] >= 0
                and e[9] == 0
                and e[2] < node[2]
                and not BACKWARD_NODE.fullmatch(e[1])
                and not any(n[2] <= e[2] < n[3] for n in nodes)
            ]
            if fitting:
                return max(fitting, key=lambda e: e[2])
        return None

    def of(self, view, t):
        """The owner of a moment in a view; None if there is none."""
        row = next(row for row in self.views[view] if row["start_ns"] <= t < row["start_ns"] + row["dur_ns"])
        bucket, event = row["bucket"], row["event"]
        if view == "wall" and bucket in ("gpu_compute", "gpu_comm", "gpu_copy"):
            live = [e for e in self.gpu if e[2] <= t < e[3] and self.bucket(e) == bucket]
            first = min(live, key=lambda e: (e[2], -e[3], e[7]))
            return self.called(self.launch(first[0]))
        if bucket == "gpu_gap":
            end = min(e[2] for e in self.gpu if e[2] > t)
            calls = [call for e in self.gpu if e[2] == end and (call := self.launch(e[0])) >= 0]
            return self.called(
                min(calls, key=lambda call: (self.events[call][2], self.events[call][3], call), default=-1)
            )
        if event is None:
            return self.thread(self.trace.threads.main, t)
        if bucket in ("kernel_launch", "sync", "sync_stall"):
            return self.called(event)
        return self.thread(self.events[event][4], t)

    def bucket(self, event):
        if event[5] != KERNEL:
            return "gpu_copy"
        return "gpu_comm" if event[0] in self.communication else "gpu_compute"

    def called(self, call):
        return self.thread(self.events[call][4], self.events[call][2]) if call >= 0 else None


def adds_up(ownership):
    """Whether the owners of each step and bucket add up to it, in each view that can be answered."""
    for name, costs in ownership.costs.items():
        view = ownership.attribution.views[name]
        sums = np.zeros((len(view.totals), len(KEYS)), np.int64)
        np.add.at(sums, (costs.step, costs.bucket), costs.ns)
        wanted = np.zeros_like(sums)
        wanted[:, [KEYS.index(key) for key in view.keys]] = view.totals
        np.testing.assert_array_equal(sums[view.known], wanted[view.known])
        assert (costs.divided_ns <= costs.ns).all()


def agrees(ownership, moments):
    """Whether the twin gives the same owners at random moments of each view."""
    twin = Twin(ownership.attribution, ownership.recording)
    rng = np.random.default_rng(0)
    for view, blamed in ownership.blame.items():
        low, high = int(blamed.edges[0]), int(blamed.edges[-1])
        asked = np.sort(rng.integers(low, high, moments))
        for t, owner in zip(asked.tolist(), blamed.at(asked).tolist(), strict=True):
            numbers = ownership.owners.rows[owner]
            lines = ownership.owners.groups[numbers.group]
            line = (lines[0].file, lines[0].line) if lines else None
            assert (line, PHASES[numbers.phase]) == (twin.of(view, t) or (None, "other")), f"{view} {t}"
