"""Knowledge graph completion: DistMult on ogbl-biokg; `--param model=distmult|complex|transe|rotate`.

PyG's `loss` compares each true triple with one whose head or tail it draws at random; all of that is one graph. The
last batch of an epoch is shorter than the others, so torch.compile compiles again, this time for any size.

The triples are generated with biokg's statistics, at a hundredth of its size; `--param scale=1` reads OGB's files
if they are in `--param root=DIR`. The run says which.
"""

import os
from pathlib import Path
from types import SimpleNamespace

import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler
from torch_geometric.nn.kge import ComplEx, DistMult, RotatE, TransE

PARAMS = {
    "model": "distmult",
    "hidden": 64,
    "batch": 2048,
    "lr": 0.01,
    "scale": 0.01,
    "root": os.environ.get("OGB_ROOT", "data"),
}
VARIANTS = {"dynamic": {"dynamic": True}}
MODELS = {"distmult": DistMult, "complex": ComplEx, "transe": TransE, "rotate": RotatE}
ENTITIES, TRIPLES, RELATIONS = 93773, 5088434, 51


def setup(ctx):
    triples, entities = load(ctx)
    train, test = triples[:-1000], triples[-1000:].to(ctx.device)
    model = MODELS[ctx.model](entities, RELATIONS, ctx.hidden).to(ctx.device)
    compute_loss, score = ctx.compile(model.loss), ctx.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=ctx.lr)

    def step(batch):
        head, relation, tail = batch.to(ctx.device, non_blocking=True).unbind(1)
        optimizer.zero_grad()
        loss = compute_loss(head, relation, tail)  # compared with triples whose head or tail it draws at random
        loss.backward()
        optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def infer():
        head, relation, tail = test.unbind(1)
        return score(head, relation, tail)

    @torch.no_grad()
    def evaluate():
        """The mean of 1/rank of the true tail among 500 others."""
        head, relation, tail = (column[:, None].expand(-1, 500) for column in test.unbind(1))
        other = torch.randint(entities, tail.shape, device=tail.device)
        scores = model(head.flatten(), relation.flatten(), other.flatten()).view(len(test), -1)
        rank = 1 + (scores >= infer()[:, None]).sum(1)
        return {"mean reciprocal rank": float((1 / rank).mean())}

    return SimpleNamespace(step=step, batches=make_loader(ctx, train), infer=infer, evaluate=evaluate)


def make_loader(ctx, rows):
    """A loader that looks up all rows of a batch at once, not one by one."""
    sampler = BatchSampler(RandomSampler(rows), ctx.batch, drop_last=False)
    pinned = ctx.device.type == "cuda"  # only copies from pinned memory need no wait
    return DataLoader(rows, sampler=sampler, batch_size=None, pin_memory=pinned)


def load(ctx):
    file = Path(ctx.root, "biokg", "split", "random", "train.pt")
    if ctx.scale == 1 and file.exists():
        ctx.note(f"real ogbl-biokg from {ctx.root}")
        return read(file)
    ctx.note(f"generated triples with the statistics of ogbl-biokg at scale {ctx.scale:g}")
    entities = max(int(ENTITIES * ctx.scale), 500)
    return generate(entities, max(int(TRIPLES * ctx.scale), 5000)), entities


def read(file):
    """Read OGB's file, which numbers the entities of each of five types from 0, into one numbering."""
    parts = torch.load(file, weights_only=False)  # OGB's arrays are pickled
    ends = {end: torch.as_tensor(parts[end]) for end in ("head", "tail")}
    count = {}
    for end in ends:
        names = parts[f"{end}_type"]
        for name in set(names):
            of_it = torch.tensor([each == name for each in names])
            count[name] = max(count.get(name, 0), int(ends[end][of_it].max()) + 1)
    first, start = {}, 0
    for name in sorted(count):
        first[name], start = start, start + count[name]
    head, tail = (ends[end] + torch.tensor([first[name] for name in parts[f"{end}_type"]]) for end in ends)
    triples = torch.stack([head, torch.as_tensor(parts["relation"]), tail], 1)
    return triples[torch.randperm(len(triples), generator=torch.Generator().manual_seed(0))], start


def generate(entities, triples):
    """Triples between entities in groups; three times in four, a relation leads from one given group to another."""
    draw = torch.Generator().manual_seed(0)
    groups = max(entities // 40, 8)
    relation = (RELATIONS * torch.rand(triples, generator=draw) ** 2).long()
    head = torch.randint(entities, (triples,), generator=draw)
    leads = torch.randint(groups, (RELATIONS, groups), generator=draw)[relation, head % groups]
    popular = (entities // groups * torch.rand(triples, generator=draw) ** 2.5).long()
    stranger = torch.randint(entities, (triples,), generator=draw)
    tail = torch.where(torch.rand(triples, generator=draw) < 0.75, popular * groups + leads, stranger)
    return torch.stack([head, relation, tail], 1)


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ctx = SimpleNamespace(**PARAMS, device=device, seed=0, compile=lambda module, **_: module, note=print)
    torch.manual_seed(ctx.seed)
    training = setup(ctx)
    for epoch in range(1, 11):
        losses = [training.step(batch) for batch in training.batches]
        rank = training.evaluate()["mean reciprocal rank"]
        print(f"epoch {epoch:2d}  loss {torch.stack(losses).mean():.4f}  mean reciprocal rank {rank:.3f}")
