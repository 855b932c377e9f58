"""What the twins share: DGL, where it can be imported, its layers as the recipes for PyG have theirs, and the graph."""

import os

import torch

os.environ.setdefault("DGLBACKEND", "pytorch")  # else DGL writes a file into the home folder
try:
    import dgl
    import dgl.nn.pytorch as layers
except Exception as error:  # a DGL built for another torch fails in ways of its own
    dgl, why = None, error


def find_dgl():
    """The library, or a sentence that says what is missing."""
    if dgl is None:
        raise SystemExit(
            f"this recipe needs DGL, which cannot be imported here ({why}): pip install dgl==1.1.3 packaging"
        )
    return dgl


class Layer(torch.nn.Module):
    """GraphConv, SAGEConv, GATConv or GINConv; what PyG's layers do for themselves is done here, or was done ahead."""

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
    """What PyG's MLP is for three sizes."""
    linear = torch.nn.Linear
    return torch.nn.Sequential(
        linear(inputs, hidden), torch.nn.BatchNorm1d(hidden), torch.nn.ReLU(), linear(hidden, outputs)
    )


def with_loops(graph):
    """A self-loop at every node, once."""
    return dgl.add_self_loop(dgl.remove_self_loop(graph))


def make_graph(ctx, edge_index, nodes, device=None):
    """The graph on its device; GCN and GAT get their self-loops ahead where that was asked for, GCN its norm, too."""
    graph = find_dgl().graph((edge_index[0], edge_index[1]), num_nodes=nodes)
    if ctx.model in ("gcn", "gat") and ctx.loops_ahead:
        graph = with_loops(graph)
        graph.edata["norm"] = layers.EdgeWeightNorm()(graph, torch.ones(graph.num_edges()))
    return graph.to(device or ctx.device)
