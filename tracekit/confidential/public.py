"""What everyone may read: names of PyTorch, PyG, CUDA's libraries and Python. A name that is not known here is hidden.

`public_names.txt` has those of torch and PyG, as `python -m tests.confidential.harvest` found them.
"""

import re
from functools import cache
from importlib.resources import files

from tracekit.confidential.stand_ins import StandIns

FILE = "public_names.txt"
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")  # words of an identifier: HTTPServer_x2 is http, server, x
_NAMED = re.compile(r"(?=.*[A-Za-z_])[\w.:<>]+", re.ASCII)  # neither an address such as 10.0.0.5 nor a sentence

LIBRARIES = ("torch", "torch_geometric")  # which code is told from without `site-packages`
# Packages that are on PyPI, by the names under which they are imported: those that no folder of a program is likely to
# be called, and those that one may be, and which are known only in `site-packages`.
_APART = """
    bitsandbytes deepspeed dgl einops fairscale flash_attn ipykernel IPython matplotlib networkx numpy ogb
    opt_einsum pandas pyg_lib pytorch_lightning safetensors scipy sklearn sympy tensorboard timm torch_cluster
    torch_scatter torch_sparse torch_spline_conv torchaudio torchmetrics torchrec torchtext torchvision tqdm
    tracekit triton xformers
"""
_INSTALLED = """
    accelerate apex ase cupy cv2 dask datasets diffusers distributed fairchem fbgemm_gpu flax fsspec h5py jax jaxlib
    lightning mlflow numba nvidia onnx onnxruntime peft PIL pyarrow pytest ray requests tornado traitlets
    transformers urllib3 vllm wandb
"""
APART = frozenset(_APART.split())
PACKAGES = APART.union(LIBRARIES, _INSTALLED.split())
# Functions that many programs have because PyTorch, PyG or Python ask for them.
_FUNCTIONS = """
    <dictcomp> <genexpr> <lambda> <listcomp> <module> <setcomp> __call__ __del__ __enter__ __exit__ __getattr__
    __getitem__ __getitems__ __init__ __iter__ __len__ __new__ __next__ __setattr__ aggregate backward collate
    collate_fn configure_optimizers edge_update edge_updater evaluate forward main message message_and_aggregate
    propagate reset_parameters setup_context step test train training_step update validation_step zero_grad
"""
FUNCTIONS = frozenset(_FUNCTIONS.split())
# Parameters of programs that advice is about, which many programs have.
_PARAMETERS = """
    ahead amp batch batch_size bf16 dtype half loops_ahead norm_ahead num_workers pin pin_memory pinned
    precision workers
"""
PARAMETERS = frozenset(_PARAMETERS.split())
# Namespaces of C++ and of operators, which are PyTorch's and those of libraries that it uses.
_NAMESPACES = """
    _c10d_functional at aten autograd c10 c10d c10d_functional cask_cudnn ck cub cublasLt cuda cudnn cusparse
    cute cutlass fbgemm fbgemm_gpu flash gloo higher_order hipcub inductor internal mkl mkldnn nccl nvfuser
    onednn prim prims profiler pyg pytorch_flash PyTorchMemEffAttention quantized rngprims rocprim sparse
    static_runtime std symm_mem thrust torch torch_cluster torch_scatter torch_sparse torch_spline_conv
    torchvision xla xmma_cudnn
"""
NAMESPACES = frozenset(_NAMESPACES.split())
# What names of kernels of cuBLAS, cuDNN, CUTLASS, Tensile, MIOpen, CK, CUB, NCCL, Triton and Inductor are made of,
# beside the words of PyTorch's headers.
_OF_LIBRARIES = """
    abd aced adapt ailk aligned alik allgather allreduce amas amd ampere asm bf bias bjlk bljk bn broadcast bs
    bt bw bwd cask cc cijk clip cnhw convolve criterion cshuffle cublas cudnn cudnntensorstruct cunn custom
    cutlass devfunc device devkernel dgrad dot dtod dtoh edc engines epilogue ex fill flash fmha fprop fused fw
    fwd gcgemm gemm gemmk gemv gemvx generic gfx gkgs gridwise grouped gru gtcx hcudnn hgemm hip hmma hopper
    host htod igemm igemms implicit inf infer interior kernel kreduce ldg ldst linearize ll lstm max maxwell
    medium memcpy memset mfma mh min miopen mult multiple nccl ncdhw nchw ncxhw ndhwc nhwc nhwckrsc nn nonfused
    nt nvjet onesweep pageable pascal per pinned poi precomputed prod ptop ptx recat red reducescatter relu rf
    ring rnn rocclr scalar scudnn sendrecv sgemm sgemmex simple simt singleread sliced small sp split splitk
    stages stat stream sum ta tb tem tensorop tile tilesize tn tr transpose tree tt turing unknown unweighted
    vectorized volta vs warpgroupsize warpsize wgrad winograd wmma wr wrw ws wt xdl xdlops xmma xregs
"""
# Of names of calls, too.
_OF_CALLS = """
    activate active actual advise alloc annotate api attach attr attribute attributes begin bind blocks bound
    callback can capture capturing clean clear clone close collector config configure context contexts
    cooperative cu cublas cuda cudart coredump create ctx cusolver current deactivate desc destroy detach device
    devices disable driver elapsed enable end enqueue entry error errors event events exec ext external fat file
    flag flags flush fn free from func function functions get global graph graphs handle handles hip host hsa id
    image import info init insert instantiate interprocess ipc is kernel last launch launching lazy least
    library limit limits link load location lock log major malloc managed map mem memory memcpy memset minor
    mode module modules multi multiprocessor multicast name named node nodes occupancy of on open option options
    order param params pci peek peer per pool pop prefetch preferred primary priority priorities process
    profiler properties ptr push query range ranges read ready record register release reserve reset resource
    retain return rtc runtime save scope set shareable shared signal size sizes sm spt start status stop stream
    streams string submit support supported surf sync synchronize tex thread time to trim uint unload unmap
    unregister update upload user usm uuid value values version virtual wait warp with workspace write zes zero
"""
OF_LIBRARIES = frozenset(_OF_LIBRARIES.split())
# Of the names by which functions and operators are known to build graphs.
_OF_BUILDERS = """
    add adj bipartite build compute construction data edge ego fps from get graph hetero hgt hop k knn list loop
    loops make merge metis nearest neighbor neighborhood neighborlist neighbors neighbour neighbourhood neighbourlist
    neighbours nodes edges one outputs pairs partition pbc primitive radius random relabel remaining remove saint sample
    sampler sampling search self subgraph temporal to undirected walk
"""
# With these, names of kernels begin that are made by a library or a compiler.
_FAMILIES = """
    ampere Cijk cpp cudnn Custom cutlass flash fmha gemm gfx9 graph gridwise hopper igemm maxwell miopen
    ncclDevKernel ncclKernel nvjet sm100 sm70 sm75 sm80 sm86 sm89 sm90 triton turing volta
"""
FAMILIES = frozenset(_FAMILIES.split())

# Of the compiler's phases and autograd's records, those whose names are not written out in PyTorch's code.
_PHASES = """
    PythonDispatchMode PythonSubclass PythonTLSSnapshot PythonGroupTLS TritonBundler.collect TritonBundler.put code_gen
    compile_attempt compile_fx.<locals>.bw_compiler compile_fx.<locals>.fw_compiler_base detach detach_ pass_pattern
    pgo.dynamic_whitelist
"""
# Words in names of processors.
_DEVICE_WORDS = """
    @ AMD ARM Ada Altra Ampere Apple Arm Blackwell Bronze CPU Core(TM) EPYC GPU GTX GeForce Generation Gold
    Grace Graphics HBM2 HBM2e HBM3 HBM3e Hopper Instinct Intel Intel(R) Laptop MIG Max Max-Q NVIDIA NVL Nvidia
    PCIE PCIe PRO Platinum Pro Processor Quadro Qualcomm RTX Radeon Ryzen SUPER SXM2 SXM3 SXM4 SXM5 Silver Tesla
    Threadripper Ti Ultra Xeon Xeon(R) with
"""
_COMPILE_ID = re.compile(r"(?:\d+|None)/(?:\d+|None)(?:_\d+)?|![\d/]+")
_MODEL = re.compile(
    r"[A-Z]{0,3}-?[0-9]{1,5}[A-Z]{0,3}|[A-Z]{0,2}\d{1,3}(?:-[A-Z0-9]{2,6}){1,3}|i\d-\w{4,7}|v\d|\d+(?:\.\d+)?[GM]Hz"
    r"|\d+(?:GB|g\.\d+gb)|\d+-Core|Neoverse-?\w\d?"
)


def words(identifier: str) -> list[str]:
    """The words that an identifier is made of, in lower case."""
    return [word.lower() for word in _PARTS.findall(identifier)]


@cache
def names(section: str) -> frozenset[str]:
    """One of the lists of the file."""
    text = files("tracekit.confidential").joinpath(FILE).read_text(encoding="utf-8")
    lists = dict(part.split("]\n") for part in text.split("\n[")[1:])
    return frozenset(lists[section].split())


@cache
def is_of_libraries(identifier: str) -> bool:
    """Whether an identifier in the name of a kernel or operator has no words but those of PyTorch and CUDA's
    libraries."""
    known = names("kernel words")
    has_name = _NAMED.fullmatch(identifier) is not None
    return has_name and all(word in known or word in OF_LIBRARIES for word in words(identifier))


def names_a_builder(identifier: str) -> bool:
    """Whether the name of something that builds a graph has no words but those by which all such things are called."""
    return bool(_NAMED.fullmatch(identifier)) and {*words(identifier)} <= {*_OF_BUILDERS.split()}


@cache
def is_class(name: str) -> bool:
    """Whether it is a class of PyTorch's or PyG's, or a node of autograd's."""
    if name in names("classes"):
        return True
    node = re.fullmatch(r"(?:torch::autograd::)?([A-Za-z]\w*?)(?:Backward\w?)?\d*", name)
    return node is not None and (node[1] in names("classes") or node[1].lower() in _node_names())


@cache
def _node_names() -> frozenset[str]:
    """Nodes are called after operators: `aten::_log_softmax` has LogSoftmaxBackward0."""
    own = ("AccumulateGrad", "CopySlices", "CopyBackwards", "GraphRoot", "Compiled", "CompiledFunction", "Not", "Error")
    return frozenset(name.replace("_", "").lower() for name in (*names("operators"), *own))


@cache
def is_phase(name: str) -> bool:
    """Whether the compiler calls one of its phases so; a number at the end may be any."""
    base = re.sub(r"_?\d+$", "", re.sub(r"^(?:pass\.)?(?:pre_grad|joint_graph|post_grad)_passes\.", "", name))
    return not {name, base, name.removeprefix("pass.")}.isdisjoint(names("phases").union(_PHASES.split()))


def device(name: str, stand_ins: StandIns) -> str:
    """The name of a processor: words that makers of processors do not use are hidden."""
    known = _DEVICE_WORDS.split()
    return " ".join(
        word if word in known or _MODEL.fullmatch(word) else stand_ins.of("device", word) for word in name.split()
    )


def compile_id(text: str, stand_ins: StandIns) -> str:
    """The id of a compilation, `0/1`; a stand-in if it is none."""
    return text if not text or _COMPILE_ID.fullmatch(text) else stand_ins.of("compilation", text)


@cache
def is_call(name: str) -> bool:
    """Whether a call of a runtime or a driver has no words but those of CUDA's, HIP's and SYCL's."""
    known = names("kernel words")
    return all(word in known or word in OF_LIBRARIES or word in _OF_CALLS.split() for word in words(name))
