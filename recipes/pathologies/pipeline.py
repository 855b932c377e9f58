"""From a naive torch.compile to one that pays off, in five steps; `--param task=churn|sales|purchase`.

Each step builds on the one before:

- `0-naive`          reduce-overhead with static shapes, for sampled batches that all have different sizes
- `1-dynamic`        `dynamic=True`: compiled for any size
- `2-tensor-lr`      the learning rate as a tensor: the scheduler no longer recompiles the optimizer
- `3-whole-graph`    no rows picked by a mask within the model: one graph
- `4-no-cudagraphs`  the default mode, in which nothing is recorded again for each size
- `5-no-syncs`       the metric adds up on the device, MeanMetric looks for no NaN, repeat_interleave knows its size,
                     and batches come from pinned memory, so that no copy is waited for
The losses are the same throughout. The data are generated customers, articles and transactions in batches like those of
a sampler, with the customer's columns added to each transaction. Does a customer come back (classification), how often
does an article sell (regression), which of two articles does a customer buy (links)?
"""

import functools
from types import SimpleNamespace

import torch
from torch.nn.functional import binary_cross_entropy_with_logits, mse_loss
from torch.utils.data import DataLoader
from torch_geometric.nn import HeteroConv, SAGEConv

PARAMS = {
    "task": "churn",
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
COLUMNS = 16
METRICS = {
    "churn": "training accuracy",
    "sales": "training mean absolute error, of logarithms",
    "purchase": "training share of pairs told apart",
}


class Net(torch.nn.Module):
    """Turns columns into vectors, passes messages along the keys, and scores each queried row; the loss is that of the
    known ones."""

    def __init__(self, ctx):
        super().__init__()
        self.task, self.masked = ctx.task, ctx.masked
        widths = {"customer": COLUMNS, "article": COLUMNS, "transaction": 2 * COLUMNS}
        self.encode = torch.nn.ModuleDict({name: torch.nn.Linear(width, ctx.hidden) for name, width in widths.items()})
        self.layers = torch.nn.ModuleList(
            HeteroConv({edge: SAGEConv(ctx.hidden, ctx.hidden) for edge in EDGES}, aggr="sum") for _ in range(2)
        )
        self.head = torch.nn.Linear(ctx.hidden, 1)

    def forward(self, x, edges, asked):
        x = {name: self.encode[name](columns) for name, columns in x.items()}
        for layer in self.layers:
            x = {name: vector.relu() for name, vector in layer(x, edges).items()}
        out, y, known = self.score(x, asked), asked["y"], asked["known"]
        if self.masked:
            return self.losses(out[known], y[known]).mean(), out
        return torch.where(known, self.losses(out, y), 0).sum() / known.sum(), out

    def score(self, x, asked):
        if self.task == "purchase":
            customer, article, other = asked["pairs"]
            better = x["article"][article] - x["article"][other]
            return self.head(x["customer"][customer] * better).squeeze(1)
        return self.head(x["customer" if self.task == "churn" else "article"]).squeeze(1)

    def losses(self, out, y):
        each = mse_loss if self.task == "sales" else binary_cross_entropy_with_logits
        return each(out, y, reduction="none")


def judge(task, out, y):
    """The sum of the task's metric over all rows."""
    return (out - y).abs().sum() if task == "sales" else ((out > 0) == (y > 0)).sum()


class Mean:
    """Does what torchmetrics' MeanMetric does with each value: it looks for NaN, unless configured otherwise."""

    def __init__(self, checked):
        self.checked, self.total, self.count = checked, 0, 0

    def update(self, value):
        if self.checked:
            for part in (value, torch.ones_like(value)):  # the value and its weight
                if torch.isnan(part).any():
                    raise ValueError("a loss is not a number")
        self.total, self.count = self.total + value, self.count + 1


def setup(ctx):
    ctx.note(f"generated batches of about {ctx.rows} customers, each of a different size")
    make_batch = functools.partial(generate, ctx.task, ctx.rows)
    pinned = not ctx.syncs and ctx.device.type == "cuda"
    batches = DataLoader(range(10_000), batch_size=None, collate_fn=make_batch, pin_memory=pinned)
    model = Net(ctx).to(ctx.device)
    lr = torch.tensor(ctx.lr, device=ctx.device) if ctx.tensor_lr else ctx.lr
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.995)
    compiled, update = ctx.compile(model), ctx.compile(optimizer.step)
    mean, judged = Mean(ctx.syncs), torch.zeros((), device=ctx.device)
    judged_on_host = rows = 0

    def step(batch):
        nonlocal judged_on_host, rows
        if ctx.device.type == "cuda":
            # Otherwise, the graphs of the optimizer begin a step of their own, in which the gradients are not valid.
            torch.compiler.cudagraph_mark_step_begin()
        x, edges, counts, asked = to_device(batch, ctx.device, non_blocking=not ctx.syncs)
        size = {} if ctx.syncs else {"output_size": len(x["transaction"])}
        whose = x["customer"].repeat_interleave(counts, 0, **size)
        x = {**x, "transaction": torch.cat([x["transaction"], whose], 1)}
        optimizer.zero_grad()
        loss, out = compiled(x, edges, asked)
        loss.backward()
        update()
        scheduler.step()
        if ctx.syncs:
            judged_on_host += float(judge(ctx.task, out.detach(), asked["y"]))
        else:
            judged.add_(judge(ctx.task, out.detach(), asked["y"]))
        mean.update(loss.detach().clone())
        rows += len(out)
        return loss.detach()

    def evaluate():
        return {METRICS[ctx.task]: (judged_on_host + float(judged)) / max(rows, 1)}

    return SimpleNamespace(step=step, batches=batches, evaluate=evaluate)


def to_device(part, device, non_blocking):
    if isinstance(part, dict):
        return {key: to_device(each, device, non_blocking) for key, each in part.items()}
    if torch.is_tensor(part):
        return part.to(device, non_blocking=non_blocking)
    return [to_device(each, device, non_blocking) for each in part]


def generate(task, rows, at):
    """Some customers, what they bought (sorted by customer), and the queries, whose answers depend on the columns.

    The numbers of customers and articles have periods that differ by one, so the same sizes do not recur.
    """
    draw = torch.Generator().manual_seed(at)
    customers = rows - rows // 8 + 7919 * at % (rows // 4)
    articles = rows // 2 + 7919 * at % (rows // 4 + 1)
    counts = 2 + torch.randint(6, (customers,), generator=draw)
    who = torch.arange(customers).repeat_interleave(counts)
    what = (articles * torch.rand(len(who), generator=draw) ** 2).long()
    count = {"customer": customers, "article": articles, "transaction": len(who)}
    x = {name: torch.randn(each, COLUMNS, generator=draw) for name, each in count.items()}
    transaction = torch.arange(len(who))
    edges = {BY: torch.stack([transaction, who]), OF: torch.stack([transaction, what])}
    edges |= {EDGES[2]: edges[BY].flip(0), EDGES[3]: edges[OF].flip(0)}
    asked = ask(task, x, who, what, draw)
    return x, edges, counts, {**asked, "known": torch.rand(len(asked["y"]), generator=draw) < 0.7}


def ask(task, x, who, what, draw):
    """The answers and, for purchases, the pairs: a customer, and the two articles to choose from."""
    customers, taste = len(x["customer"]), x["article"][:, 0]
    if task == "sales":
        return {"y": (taste + 0.5 * torch.randn(len(taste), generator=draw)).exp().log1p()}
    if task == "purchase":
        pairs = torch.stack([torch.arange(customers), *torch.randint(len(taste), (2, customers), generator=draw)])
        better = (1 + x["customer"][:, 0]) * (taste[pairs[1]] - taste[pairs[2]])
        return {"y": (better + 0.5 * torch.randn(customers, generator=draw) > 0).float(), "pairs": pairs}
    liked = torch.zeros(customers).index_add(0, who, taste[what] + x["transaction"][:, 0])
    return {"y": (liked + torch.randn(customers, generator=draw) > 0).float()}


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ctx = SimpleNamespace(**PARAMS, device=device, seed=0, compile=lambda module=None, **_: module, note=print)
    torch.manual_seed(ctx.seed)
    training = setup(ctx)
    for count, batch in zip(range(1, 101), training.batches, strict=False):
        loss = training.step(batch)
        if count % 20 == 0:
            print(f"step {count}  loss {loss:.4f}")
