"""pytorch/examples, imagenet: meters, top-k accuracy, args.gpu, DataParallel, a prefetcher on a stream."""

import torch
import torch.backends.cudnn as cudnn

gpu = 0 if torch.cuda.is_available() else None
torch.manual_seed(0)


class AverageMeter:
    def __init__(self):
        self.sum = self.count = 0

    def update(self, val, n=1):
        self.sum, self.count = self.sum + val * n, self.count + n


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        _, pred = output.topk(max(topk), 1, True, True)
        correct = pred.t().eq(target.view(1, -1).expand_as(pred.t()))
        return [correct[:k].reshape(-1).float().sum(0, keepdim=True).mul_(100.0 / target.size(0)) for k in topk]


class Prefetcher:
    def __init__(self, loader):
        self.loader, self.stream = iter(loader), torch.cuda.Stream() if gpu is not None else None
        self.mean = torch.tensor([0.5]).cuda().view(1, 1) if gpu is not None else torch.tensor([[0.5]])
        self.preload()

    def preload(self):
        try:
            self.input, self.target = next(self.loader)
        except StopIteration:
            self.input = None
            return
        if self.stream is None:
            self.input = self.input.sub(self.mean)
            return
        with torch.cuda.stream(self.stream):
            self.input = self.input.cuda(gpu, non_blocking=True).sub_(self.mean)
            self.target = self.target.cuda(gpu, non_blocking=True)

    def next(self):
        if self.stream is not None:
            torch.cuda.current_stream().wait_stream(self.stream)
        input, target = self.input, self.target
        if input is not None and self.stream is not None:
            input.record_stream(torch.cuda.current_stream())
        self.preload()
        return input, target


model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
if gpu is not None:
    torch.cuda.set_device(gpu)
    model = model.cuda(gpu)
    model = torch.nn.DataParallel(model).cuda()
    cudnn.benchmark = True
criterion = torch.nn.CrossEntropyLoss().to("cuda:0" if gpu is not None else "cpu")
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
x, y = torch.randn(64, 16), torch.randint(10, (64,))
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=8, pin_memory=gpu is not None)
losses, top1 = AverageMeter(), AverageMeter()
prefetcher = Prefetcher(loader)
images, target = prefetcher.next()
while images is not None:
    output = model(images)
    loss = criterion(output, target)
    acc1, acc5 = accuracy(output, target, topk=(1, 5))
    losses.update(loss.item(), images.size(0))  # sync _local_scalar_dense
    top1.update(acc1[0], images.size(0))
    print(f"loss {losses.sum:.9g}")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    images, target = prefetcher.next()
