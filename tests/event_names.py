"""The names and threads in generated traces: some count, and others only look as if they did."""

from __future__ import annotations

MAIN = (100, 100)


AUTOGRAD = (100, 9)


SECOND = (100, 10)  # before 9 as text, after it as a number


THIRD = (100, "worker")


OTHER = (200, 200)


THREADS = [MAIN, MAIN, MAIN, MAIN, AUTOGRAD, AUTOGRAD, SECOND, THIRD]


OPERATORS = [
    "aten::mm",
    "aten::add",
    "autograd::engine::evaluate_function: MmBackward0",
    "autograd::engine::evaluate_function: CompiledFunctionBackward",
    "TorchDynamo Cache Lookup",
    "Torch-Compiled Region: 0/0",
    "## Call CompiledFxGraph abc ##",
    "CompiledFunction",
    "Optimizer.step#Adam.step",
    "Optimizer.zero_grad#Adam.zero_grad",
    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
    "dynamo",
    "entire_frame_compile",
    "compile_inner (dynamo_timed)",
    "CachingAutotuner.benchmark_all_configs",
    "CachingAutotuner.coordinate_descent_tuning",
    "nccl:all_reduce",
]


ANNOTATIONS = [
    "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
    "Optimizer.step#SGD.step",
    "my region",
    "backward._backward_impl (dynamo_timed)",
    "entire_backward_compile",
    "CUDAGraphNode.record",
    "CUDAGraphTreeManager.record_function",
    "CUDAGraphTreeManager.record_function (2)",  # is no sync call
    "## Call CompiledFxGraph def ##",
    "TorchDynamo Cache Lookup",
    "autograd::engine::evaluate_function: annotated",
]


FRAMES = [
    "train.py(10): step",
    "torch/nn/modules/module.py(1): _call_impl",
    "<built-in method run_backward of torch._C._EngineBase object at 0x7f>",
    "/tmp/torchinductor_me/ab/cabc.py(30): call",
    "/tmp/pass/inductor/7r/c7r2lb574illqeptjflwv2zdklurlcr3z.py(107): call",
    "w7/cw7vj52l34hrj32sjriah5qg.py(2): call",
    "w8/cw8vj52l34hrj32sjriah5qg.py(2): call",  # Inductor does not name its files like this
    "w7/cw6vj52l34hrj32sjriah5qg.py(2): call",
    "ab/cabc.py(30): call",
    "<built-in method mm of type object at 0x7f>",
    "TorchDynamo Cache Lookup",
    "dynamo",
]


LAUNCHES = [
    "cudaLaunchKernel",
    "cudaLaunchKernel",
    "cudaLaunchKernelExC_v11060",
    "cuLaunchKernel",
    "cuLaunchKernelEx_ptsz",
    "cudaLaunchCooperativeKernel",
    "cudaGraphLaunch_v10000",
    "cudaMemcpyAsync",
    "cudaMemcpyAsync_ptsz_v7000",
    "cudaMemcpyPeerAsync",
    "cuMemcpyHtoDAsync_v2",
    "cudaMemsetAsync",
    "cudaMemset",
    "hipLaunchKernel",
    "hipExtModuleLaunchKernel",
    "hipModuleLaunchKernel",
    "hipLaunchByPtr",
    "hipMemcpyAsync",
]


COPIES = ["cudaMemcpyAsync", "cudaMemcpyAsync_v3020", "hipMemcpy2DAsync", "cuMemcpyDtoHAsync_v2_ptsz"]


COPIED = [
    "Memcpy DtoH (Device -> Pageable)",
    "Memcpy DtoH (Device -> Pageable)",
    "Memcpy HtoD (Pageable -> Device)",
    "Memcpy HtoD (Pinned -> Device)",
    "Memcpy HtoH (Pinned -> Pageable)",  # blocks
    "memcpy DtoD (pinned)",  # letters as written
    "Memcpy DtoD (Device -> Device)",
    "CopyDeviceToDevice",
]


SYNCS = [
    "cudaStreamSynchronize",
    "cudaStreamSynchronize_v3020",
    "cudaDeviceSynchronize",
    "cudaEventSynchronize",
    "cudaMemcpy",
    "cudaMemcpy2DToArray_v3020_ptds",
    "hipMemcpyWithStream",
    "hipMemcpyDtoH",
    "cuCtxSynchronize",
    "cuMemcpyDtoH_v2",
]


ALLOCATIONS = ["cudaMalloc", "cudaFree_v3020", "hipMallocAsync", "cudaHostAlloc", "cuMemMap", "cuMemAlloc_v2"]


# Names that resemble others, and must not be confused with them.
OTHERS = [
    "cudaStreamIsCapturing",
    "cudaEventRecord",
    "cudaStreamWaitEvent",
    "cudaEventQuery",
    "cudaMallocPitch",
    "cudaMemcpyAsyncOr",
    "hipMemcpyDtoHOr",
    "cuGraphInstantiate",
    "cudaDeviceSynchronize_v",
    "xcudaLaunchKernel",
    "unknown",
]


KERNELS = [
    "gemm",
    "void at::native::add",
    "ncclDevKernel_AllReduce",
    "NCCLKernel",
    "rcclKernel",
    "oneccl_reduce",
    "my_nccl",
    "mscclpp_kernel",
    "void deep_ep::intranode::dispatch<8>",
    "NVSHMEM_barrier",
    "void vllm::cross_device_reduce_2stage<half>",
    "multimem_all_gather",
    "deep::internode",  # holds it
    "multimem_all",
    "Memcpy",
]


OVERHEAD = [
    "Lazy Function Loading",
    "Runtime Triggered Module Loading",
    "Buffer Flush",
    "Activity Buffer Request",
]


OLD = {
    "cpu_op": "Operator",
    "cuda_runtime": "Runtime",
    "kernel": "Kernel",
    "gpu_memcpy": "Memcpy",
    "gpu_memset": "Memset",
}
