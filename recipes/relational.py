"""A shop's tables as a graph, with three tasks; `--param task=churn|sales|purchase`.

Customers, articles and the transactions between them are node types, keys between tables are edges. Each table's
columns are encoded (numbers, categories, times), messages pass along the keys, and a head answers: does a customer stop
buying (classification), how often does an article sell (regression), who buys what (links) in the coming week?

The tables are generated, at a thousandth of the size of H&M's; `--param scale=0.01` makes them larger. Batches are
sampled hop by hop in plain torch, so each has its own sizes.

`--param encoder=frame` encodes the columns with PyTorch Frame's ResNet for tables, as relational deep learning usually
does; its variants are `frame` and `frame-dynamic` where `pip install pytorch-frame` was done.
"""

from importlib.util import find_spec
from types import SimpleNamespace

import torch
from torch.nn.functional import binary_cross_entropy_with_logits, mse_loss, softplus
from torch.utils.data import BatchSampler, DataLoader, RandomSampler
from torch_geometric.nn import HeteroConv, SAGEConv

PARAMS = {
    "task": "churn",
    "encoder": "plain",
    "hidden": 64,
    "fanout": [8, 8],
    "batch": 256,
    "lr": 0.003,
    "amp": False,
    "scale": 0.001,
}
VARIANTS = {"dynamic": {"dynamic": True}}
WITH_FRAME = find_spec("torch_frame") is not None
if WITH_FRAME:
    import torch_frame
    from torch_frame.data.stats import StatType
    from torch_frame.nn import EmbeddingEncoder, LinearEncoder, ResNet

    VARIANTS["frame"] = {"encoder": "frame", "compile": False}
    VARIANTS["frame-dynamic"] = {"encoder": "frame", "dynamic": True}
ROWS = {"customer": 1371980, "article": 105542, "transaction": 31788324}
KEYS = [("transaction", "by", "customer"), ("transaction", "of", "article")]
EDGES = [*KEYS, *((end, f"rev_{key}", start) for start, key, end in KEYS)]
CATEGORIES = {"customer": [5, 20], "article": [30, 50], "transaction": [2, 7]}  # how many values each column has
NUMBERS = 2  # columns, in every table


class Encoder(torch.nn.Module):
    """A table's columns as one vector for each row."""

    def __init__(self, categories, hidden):
        super().__init__()
        self.numbers = torch.nn.Linear(NUMBERS, hidden)
        self.categories = torch.nn.ModuleList(torch.nn.Embedding(count, hidden) for count in categories)

    def forward(self, numbers, categories):
        encoded = [embed(categories[:, at]) for at, embed in enumerate(self.categories)]
        return self.numbers(numbers) + sum(encoded)


class FrameEncoder(torch.nn.Module):
    """The same with PyTorch Frame. What it must know of a column is known beforehand: no table is looked through."""

    def __init__(self, categories, hidden):
        super().__init__()
        numbers, kinds = [f"number {at}" for at in range(NUMBERS)], [f"category {at}" for at in range(len(categories))]
        self.names = {torch_frame.numerical: numbers, torch_frame.categorical: kinds}
        known = {name: {StatType.MEAN: 0.0, StatType.STD: 1.0} for name in numbers}
        for name, count in zip(kinds, categories, strict=True):
            known[name] = {StatType.COUNT: ([*range(count)], [1] * count)}
        encoders = {torch_frame.numerical: LinearEncoder(), torch_frame.categorical: EmbeddingEncoder()}
        self.model = ResNet(hidden, hidden, 2, known, self.names, encoders)

    def forward(self, numbers, categories):
        columns = {torch_frame.numerical: numbers, torch_frame.categorical: categories}
        return self.model(torch_frame.TensorFrame(columns, self.names))


class Net(torch.nn.Module):
    def __init__(self, ctx):
        super().__init__()
        encoder = {"plain": Encoder, "frame": FrameEncoder}[ctx.encoder]
        self.encode = torch.nn.ModuleDict({name: encoder(counts, ctx.hidden) for name, counts in CATEGORIES.items()})
        self.layers = torch.nn.ModuleList(
            HeteroConv({edge: SAGEConv(ctx.hidden, ctx.hidden) for edge in EDGES}) for _ in ctx.fanout
        )
        self.head = torch.nn.Linear(ctx.hidden, 1)

    def forward(self, numbers, categories, edges):
        x = {name: self.encode[name](numbers[name], categories[name]) for name in numbers}
        for layer in self.layers:
            x = {name: (x[name] + new).relu() for name, new in layer(x, edges).items()}
        return x, {name: self.head(vector).squeeze(-1) for name, vector in x.items()}


class Sampler:
    """Samples the rows within some hops of the given ones, along the keys, with at most that many referrers per row."""

    def __init__(self, tables, fanout):
        self.tables, self.fanout, self.edges = tables, fanout, {}
        self.position = {name: torch.full((rows,), -1) for name, rows in tables.rows.items()}  # of a row in the batch
        for (start, key, end), target in zip(KEYS, tables.keys, strict=True):
            source = torch.arange(len(target))
            self.edges[start, key, end] = by_target(source, target, tables.rows[end])
            self.edges[end, f"rev_{key}", start] = by_target(target, source, tables.rows[start])

    def __call__(self, seeds):
        rows = {name: seeds.get(name, torch.empty(0, dtype=torch.long)) for name in self.position}
        drawn, frontier = {edge: [] for edge in self.edges}, dict(rows)
        self._number(rows, dict.fromkeys(rows, 0))
        for count in self.fanout:
            for edge, lists in self.edges.items():
                drawn[edge].append(draw_some(frontier[edge[2]], count, *lists))
            frontier = {name: self._new(name, drawn) for name in rows}
            self._number(frontier, {name: len(known) for name, known in rows.items()})
            rows = {name: torch.cat([known, frontier[name]]) for name, known in rows.items()}
        edges = {edge: torch.cat(pairs, 1) for edge, pairs in drawn.items()}
        edges = {
            edge: torch.stack([self.position[edge[0]][a], self.position[edge[2]][b]]) for edge, (a, b) in edges.items()
        }
        for name, known in rows.items():
            self.position[name][known] = -1
        columns = (self.tables.numbers, self.tables.categories)
        return tuple({name: column[name][rows[name]] for name in rows} for column in columns), edges

    def _new(self, name, drawn):
        rows = torch.cat([pairs[-1][0] for edge, pairs in drawn.items() if edge[0] == name])
        return rows[self.position[name][rows] < 0].unique()

    def _number(self, rows, first):
        for name, new in rows.items():
            self.position[name][new] = first[name] + torch.arange(len(new))


def by_target(source, target, rows):
    """The sources in the order of their targets, where those of each target begin, and how many there are."""
    degree = target.bincount(minlength=rows)
    return source[target.argsort()], degree.cumsum(0) - degree, degree


def draw_some(targets, count, source, first, degree):
    """Edges to these targets: all if a target has few, else some at random (possibly twice)."""
    degree, nth = degree[targets, None], torch.arange(count)
    nth = torch.where(degree > count, (torch.rand(len(targets), count) * degree).long(), nth)
    there = nth < degree
    return torch.stack([source[(first[targets, None] + nth)[there]], targets[:, None].expand_as(nth)[there]])


class Churn:
    """Which customers stop buying?"""

    metric = "test AUROC"

    def __init__(self, tables):
        bought = tables.keys[0].unique()  # customers who never bought cannot stop
        self.answers = torch.ones(tables.rows["customer"]).index_fill(0, tables.later[0], 0)
        self.rows = bought[torch.randperm(len(bought))]

    def prepare(self, rows):
        return {"customer": rows}, self.answers[rows]

    def loss(self, x, scores, answer):
        return binary_cross_entropy_with_logits(scores["customer"][: len(answer)].float(), answer)

    def judge(self, x, scores, answer):
        order = scores["customer"][: len(answer)].argsort()
        rank = torch.empty_like(answer).index_copy(0, order, torch.arange(1.0, len(answer) + 1, device=answer.device))
        yes = answer.sum()
        return (rank[answer > 0].sum() - yes * (yes + 1) / 2) / (yes * (len(answer) - yes))


class Sales:
    """How often is each article sold?"""

    metric = "test mean absolute error"

    def __init__(self, tables):
        self.answers = tables.later[1].bincount(minlength=tables.rows["article"]).float()
        self.rows = torch.randperm(tables.rows["article"])

    def prepare(self, rows):
        return {"article": rows}, self.answers[rows]

    def loss(self, x, scores, answer):
        return mse_loss(scores["article"][: len(answer)].float(), answer.log1p())

    def judge(self, x, scores, answer):
        return (scores["article"][: len(answer)].float().expm1() - answer).abs().mean()


class Purchase:
    """Who buys which article? A real pair should score higher than one drawn at random."""

    metric = "test share of pairs told from random ones"

    def __init__(self, tables):
        pairs = torch.stack(tables.later, 1)
        self.rows, self.articles = pairs[torch.randperm(len(pairs))], tables.rows["article"]

    def prepare(self, rows):
        customers, who = rows[:, 0].unique(return_inverse=True)
        articles, what = torch.cat([rows[:, 1], torch.randint(self.articles, (len(rows),))]).unique(return_inverse=True)
        return {"customer": customers, "article": articles}, torch.stack([who, *what.view(2, -1)])

    def loss(self, x, scores, answer):
        return softplus(-self._margin(x, answer)).mean()

    def judge(self, x, scores, answer):
        return (self._margin(x, answer) > 0).float().mean()

    def _margin(self, x, answer):
        customer, article, other = x["customer"][answer[0]], x["article"][answer[1]], x["article"][answer[2]]
        return (customer * (article - other)).sum(-1).float() / customer.size(1) ** 0.5


TASKS = {"churn": Churn, "sales": Sales, "purchase": Purchase}


def setup(ctx):
    if ctx.encoder == "frame" and not WITH_FRAME:
        raise ModuleNotFoundError("encoder=frame needs PyTorch Frame: pip install pytorch-frame")
    ctx.note(f"generated tables with the statistics of H&M's at scale {ctx.scale:g}; rows sampled by plain torch")
    tables = generate(ctx.scale)
    task, sample = TASKS[ctx.task](tables), Sampler(tables, ctx.fanout)
    test, train = task.rows[: len(task.rows) // 5], task.rows[len(task.rows) // 5 :]
    model = Net(ctx).to(ctx.device)
    compiled = ctx.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=ctx.lr)

    def make_batch(rows):
        seeds, answer = task.prepare(rows)
        return *sample(seeds), answer

    def predict(batch):
        (numbers, categories), edges, answer = to_device(batch, ctx.device)
        with torch.autocast(answer.device.type, torch.bfloat16, enabled=ctx.amp):
            return *compiled(numbers, categories, edges), answer

    def step(batch):
        optimizer.zero_grad()
        loss = task.loss(*predict(batch))
        loss.backward()
        optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def infer():
        return predict(make_batch(test))

    def evaluate():
        return {task.metric: float(task.judge(*infer()))}

    rows = BatchSampler(RandomSampler(train), ctx.batch, drop_last=False)
    pinned = ctx.device.type == "cuda"  # only copies from pinned memory need no wait
    batches = DataLoader(train, sampler=rows, batch_size=None, collate_fn=make_batch, pin_memory=pinned)
    return SimpleNamespace(step=step, batches=batches, infer=infer, evaluate=evaluate)


def to_device(batch, device):
    if isinstance(batch, dict):
        return {key: to_device(part, device) for key, part in batch.items()}
    if torch.is_tensor(batch):
        return batch.to(device, non_blocking=True)
    return [to_device(part, device) for part in batch]


def generate(scale):
    """Customers buy popular articles to their taste, each up to some day; the last tenth of the time is predicted."""
    draw = torch.Generator().manual_seed(0)
    count = {name: max(int(rows * scale), 300) for name, rows in ROWS.items()}
    tastes = 12
    who = (count["customer"] * torch.rand(count["transaction"], generator=draw) ** 2).long()
    taste = torch.where(torch.rand(len(who), generator=draw) < 0.7, who, who.flip(0)) % tastes
    what = (count["article"] // tastes * torch.rand(len(who), generator=draw) ** 2).long() * tastes + taste
    when = torch.rand(len(who), generator=draw)
    leaves = 0.4 + torch.rand(count["customer"], generator=draw)
    stays = when < leaves[who]
    known, later = stays & (when < 0.9), stays & (when >= 0.9)
    count["transaction"] = int(known.sum())
    numbers = {name: torch.randn(rows, NUMBERS, generator=draw) for name, rows in count.items()}
    numbers["transaction"][:, 0] = when[known]
    categories = {
        name: torch.stack([torch.randint(values, (rows,), generator=draw) for values in CATEGORIES[name]], 1)
        for name, rows in count.items()
    }
    for name in ("customer", "article"):  # a column that hints at the taste, half of the time
        hint = torch.rand(count[name], generator=draw) < 0.5
        categories[name][:, 1] = torch.where(hint, torch.arange(count[name]) % tastes, categories[name][:, 1])
    return SimpleNamespace(
        rows=count,
        numbers=numbers,
        categories=categories,
        keys=[who[known], what[known]],
        later=[who[later], what[later]],
    )


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ctx = SimpleNamespace(**PARAMS, device=device, seed=0, compile=lambda module, **_: module, note=print)
    torch.manual_seed(ctx.seed)
    training = setup(ctx)
    for epoch in range(1, 11):
        losses = [training.step(batch) for batch in training.batches]
        print(f"epoch {epoch:2d}  loss {torch.stack(losses).mean():.4f}  {training.evaluate()}")
