"""From a naive torch.compile to one that pays, in five steps, each on top of the one before.

- `0-naive`          reduce-overhead with static shapes, over sampled batches that are all of different sizes
- `1-dynamic`        `dynamic=True`: compiled for any size
- `2-tensor-lr`      the learning rate as a tensor: the scheduler no longer recompiles the optimizer
- `3-whole-graph`    no rows picked by a mask within the model: one graph
- `4-no-cudagraphs`  the default mode: nothing is recorded anew for each size
- `5-no-syncs`       the metric adds up on the device, MeanMetric looks for no NaN, repeat_interleave knows its size,
                     and batches come from pinned memory, so that no copy is waited for
The losses are the same throughout. The data: generated customers, articles and transactions in batches as a sampler
gives them, a customer's columns along with each of their transactions; does a customer come back?
"""

import functools
from types import SimpleNamespace

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader
from torch_geometric.nn import HeteroConv, SAGEConv

PARAMS = {
    "tensor_lr": False,
    "masked": True,
    "syncs": True,
    "rows": 400,
    "hidden": 64,
    "lr": 0.05,
}
_dynamic = {"mode": "reduce-overhead", "dynamic": True}
VARIANTS = {
    "0-naive": {"mode": "reduce-overhead", "dynamic": False},
    "1-dynamic": {**_dynamic},
    "2-tensor-lr": {**_dynamic, "tensor_lr": True},
    "3-whole-graph": {**_dynamic, "tensor_lr": True, "masked": False},
    "4-no-cudagraphs": {"dynamic": True, "tensor_lr": True, "masked": False},
    "5-no-syncs": {"dynamic": True, "tensor_lr": True, "masked": False, "syncs": False},
}
BY, OF = ("transaction", "by", "customer"), ("transaction", "of", "article")
EDGES = [BY, OF, ("customer", "rev_by", "transaction"), ("article", "rev_of", "transaction")]
COLUMNS, IGNORED = 16, -100


class Net(torch.nn.Module):
    """Columns to vectors, messages along the keys, and a head for customers; the loss of the known ones."""

    def __init__(self, hidden, masked):
        super().__init__()
        self.masked = masked
        widths = {"customer": COLUMNS, "article": COLUMNS, "transaction": 2 * COLUMNS}
        self.encode = torch.nn.ModuleDict({name: torch.nn.Linear(width, hidden) for name, width in widths.items()})
        self.layers = torch.nn.ModuleList(
            HeteroConv({edge: SAGEConv(hidden, hidden) for edge in EDGES}, aggr="sum") for _ in range(2)
        )
        self.head = torch.nn.Linear(hidden, 2)

    def forward(self, x, edges, y, known):
        x = {name: self.encode[name](columns) for name, columns in x.items()}
        for layer in self.layers:
            x = {name: vector.relu() for name, vector in layer(x, edges).items()}
        out = self.head(x["customer"])
        if self.masked:
            return cross_entropy(out[known], y[known]), out.argmax(1)
        return cross_entropy(out, torch.where(known, y, IGNORED), ignore_index=IGNORED), out.argmax(1)


class Mean:
    """What torchmetrics' MeanMetric does with each value: it looks for NaN, unless told not to."""

    def __init__(self, checked):
        self.checked, self.total, self.count = checked, 0, 0

    def update(self, value):
        if self.checked:
            for part in (value, torch.ones_like(value)):  # the value and its weight
                if torch.isnan(part).any():
                    raise ValueError("a loss is not a number")
        self.total, self.count = self.total + value, self.count + 1


def setup(ctx):
    ctx.note(f"generated batches of about {ctx.rows} customers, each of other sizes")
    make_batch = functools.partial(generate, ctx.rows)
    pinned = not ctx.syncs and ctx.device.type == "cuda"
    batches = DataLoader(range(10_000), batch_size=None, collate_fn=make_batch, pin_memory=pinned)
    model = Net(ctx.hidden, ctx.masked).to(ctx.device)
    lr = torch.tensor(ctx.lr, device=ctx.device) if ctx.tensor_lr else ctx.lr
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.995)
    compiled, update = ctx.compile(model), ctx.compile(optimizer.step)
    mean, right = Mean(ctx.syncs), torch.zeros((), dtype=torch.long, device=ctx.device)
    right_on_host = customers = 0

    def step(batch):
        nonlocal right_on_host, customers
        x, edges, counts, y, known = to_device(batch, ctx.device, non_blocking=not ctx.syncs)
        size = {} if ctx.syncs else {"output_size": len(x["transaction"])}
        whose = x["customer"].repeat_interleave(counts, 0, **size)
        x = {**x, "transaction": torch.cat([x["transaction"], whose], 1)}
        optimizer.zero_grad()
        loss, answer = compiled(x, edges, y, known)
        loss.backward()
        update()
        scheduler.step()
        if ctx.syncs:
            right_on_host += int((answer == y).sum())
        else:
            right.add_((answer == y).sum())
        mean.update(loss.detach().clone())
        customers += len(y)
        return loss.detach()

    def evaluate():
        return {"training accuracy": (right_on_host + int(right)) / max(customers, 1)}

    return SimpleNamespace(step=step, batches=batches, evaluate=evaluate)


def to_device(part, device, non_blocking):
    if isinstance(part, dict):
        return {key: to_device(each, device, non_blocking) for key, each in part.items()}
    if torch.is_tensor(part):
        return part.to(device, non_blocking=non_blocking)
    return [to_device(each, device, non_blocking) for each in part]


def generate(rows, at):
    """Some customers, what they bought (sorted by customer), and whether they come back: it depends on what it was.

    Customers and articles go round in circles one apart in length: sizes that have been once do not come again.
    """
    draw = torch.Generator().manual_seed(at)
    customers = rows - rows // 8 + 7919 * at % (rows // 4)
    articles = rows // 2 + 7919 * at % (rows // 4 + 1)
    counts = 2 + torch.randint(6, (customers,), generator=draw)
    who = torch.arange(customers).repeat_interleave(counts)
    what = (articles * torch.rand(len(who), generator=draw) ** 2).long()
    count = {"customer": customers, "article": articles, "transaction": len(who)}
    x = {name: torch.randn(each, COLUMNS, generator=draw) for name, each in count.items()}
    liked = torch.zeros(customers).index_add(0, who, x["article"][what, 0] + x["transaction"][:, 0])
    y = (liked + torch.randn(customers, generator=draw) > 0).long()
    transaction = torch.arange(len(who))
    edges = {BY: torch.stack([transaction, who]), OF: torch.stack([transaction, what])}
    edges |= {EDGES[2]: edges[BY].flip(0), EDGES[3]: edges[OF].flip(0)}
    return x, edges, counts, y, torch.rand(customers, generator=draw) < 0.7


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ctx = SimpleNamespace(**PARAMS, device=device, seed=0, compile=lambda module=None, **_: module, note=print)
    torch.manual_seed(ctx.seed)
    training = setup(ctx)
    for count, batch in zip(range(1, 101), training.batches, strict=False):
        loss = training.step(batch)
        if count % 20 == 0:
            print(f"step {count}  loss {loss:.4f}")
