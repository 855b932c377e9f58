"""Owners, moment by moment and the slow way: the rules once more, for a trace with stacks and no lines file."""

from tracekit.trace.columns import values
from tracekit.trace.roles import BACKWARD_FRAME, BACKWARD_NODE, KERNEL, OPERATOR, PYTHON


class Twin:
    """One trace; `of` answers for a moment. Frames are told by a function of their names."""

    def __init__(self, cost, frames):
        trace = cost.trace
        roles = trace.roles
        self.trace, self.cost = trace, cost
        names = [trace.names[code] for code in trace.name_codes.tolist()]
        columns = (trace.ts_ns, trace.end_ns, trace.track, roles.kind, roles.annotation, trace.correlation)
        columns += (values(trace.events["sequence"], -1), values(trace.events["fwd_thread"], 0))
        rows = zip(*(column.tolist() for column in columns), strict=True)
        self.events = [(row, name, *each) for row, (name, each) in enumerate(zip(names, rows, strict=True))]
        self.of_thread = {track: [e for e in self.events if e[4] == track] for track in trace.threads.driving}
        self.frames = frames
        self.gpu = [e for e in self.events if roles.gpu[e[0]] and e[3] > e[2]]
        self.communication = {e[0] for e in self.gpu if roles.communication[e[0]]}
        table = cost.segments.to_pylist()
        self.views = {view: [row for row in table if row["view"] == view] for view in ("wall", "host")}

    def launch(self, row):
        import numpy as np

        return int(self.trace.links.launch(np.array([row]))[0])

    def main(self, t):
        """File and line of the innermost frame of the user's, and whether the main thread runs forward or backward."""
        main = self.trace.threads.main
        live = [e for e in self.of_thread[main] if e[5] == PYTHON and e[2] <= t < e[3]]
        own = [(e[2], -e[3], frame.line) for e in live if (frame := self.frames.of(e[1])).line]
        place = max(own)[2] if own else None
        return (place.file, place.line) if place else None, self.phase(t, live)

    def phase(self, t, live):
        around = [e for e in self.of_thread[self.trace.threads.main] if e[6] and e[2] <= t < e[3]]
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
        """The owner of a moment of a view; None for nobody."""
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
