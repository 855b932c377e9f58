"""What the twins share: DGL, if it can be imported, its layers with PyG's behaviour, and the graph."""

import os

import torch

os.environ.setdefault("DGLBACKEND", "pytorch")  # otherwise DGL writes a file into the home folder
try:
    import dgl
    import dgl.nn.pytorch as layers
except Exception as error:  # a DGL that was built for another torch may raise any exception
    dgl, why = None, error


def find_dgl():
    """The library; raises an exception that says what is missing."""
    if dgl is None:
        raise SystemExit(
            f"this recipe needs DGL, which cannot be imported here ({why}): pip install dgl==1.1.3 packaging"
        )
    return dgl


class Layer(torch.nn.Module):
    """GraphConv, SAGEConv, GATConv or GINConv, with what PyG's layers do by themselves, unless done before training."""

    def __init__(self, ctx, inputs, outputs, heads=1, attention_dropout=0.0):
        super().__init__()
        self.weighted = ctx.model == "gcn" and ctx.loops_ahead
        self.wants_loops = ctx.model in ("gcn", "gat") and not ctx.loops_ahead
        if ctx.model == "gcn":
            self.layer = layers.GraphConv(inputs, outputs, norm="none" if ctx.loops_ahead else "both")
        elif ctx.model == "sage":
            self.layer = layers.SAGEConv(inputs, outputs, "mean")
        elif ctx.model == "gin":
            self.layer = layers.GINConv(mlp(inputs, ctx.hidden, outputs), "sum", learn_eps=True)
        else:
            self.layer = layers.GATConv(inputs, outputs // heads, heads, attn_drop=attention_dropout)

    def forward(self, graph, x):
        if self.wants_loops:
            graph = with_loops(graph)
        weight = {"edge_weight": graph.edata["norm"]} if self.weighted else {}
        return self.layer(graph, x, **weight).flatten(1)  # GAT's heads side by side


def mlp(inputs, hidden, outputs):
    """The equivalent of PyG's MLP with three sizes."""
    linear = torch.nn.Linear
    return torch.nn.Sequential(
        linear(inputs, hidden), torch.nn.BatchNorm1d(hidden), torch.nn.ReLU(), linear(hidden, outputs)
    )


def with_loops(graph):
    """The graph with exactly one self-loop at every node."""
    return dgl.add_self_loop(dgl.remove_self_loop(graph))


def make_graph(ctx, edge_index, nodes, device=None):
    """The graph on its device; if requested, with self-loops for GCN and GAT, and with GCN's norm."""
    graph = find_dgl().graph((edge_index[0], edge_index[1]), num_nodes=nodes)
    if ctx.model in ("gcn", "gat") and ctx.loops_ahead:
        graph = with_loops(graph)
        graph.edata["norm"] = layers.EdgeWeightNorm()(graph, torch.ones(graph.num_edges()))
    return graph.to(device or ctx.device)
