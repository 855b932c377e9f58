"""A benchmark: events, memory, properties, waits of every kind."""

import time

import torch

device = torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")
cuda = device.type == "cuda"
model = torch.nn.Linear(64, 64, device=device)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(32, 64, device=device)
if cuda:
    p = torch.cuda.get_device_properties(device)
    print(
        torch.cuda.get_device_name(0),
        p.total_memory // 2**30,
        p.major,
        p.multi_processor_count,
        torch.version.cuda,
        torch.cuda.device_count(),
        torch.cuda.memory_summary()[:10],
        torch.cuda.mem_get_info(),
    )
    print(
        torch.cuda.get_device_capability(),
        torch.backends.cudnn.version(),
        torch.backends.cudnn.is_available(),
        torch.cuda.get_arch_list(),
        torch.cuda.utilization(),
    )
for step in range(6):
    if cuda:
        torch.cuda.reset_peak_memory_stats()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()  # sync torch.cuda.synchronize
        start.record()
    began = time.perf_counter()
    loss = model(x).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if cuda:
        end.record()
        end.synchronize()  # sync torch.cuda.Event.synchronize
        print(
            start.elapsed_time(end),
            torch.cuda.max_memory_allocated() / 2**20,
            torch.cuda.memory_reserved(device),
            torch.cuda.memory_stats()["allocated_bytes.all.peak"],
            time.perf_counter() - began,
        )
        torch.cuda.empty_cache()  # sync torch.cuda.empty_cache
        torch.cuda.current_stream().synchronize()  # sync torch.cuda.Stream.synchronize
