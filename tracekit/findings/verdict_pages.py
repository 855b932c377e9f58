"""Every verdict on what bounds a step, and the pages of those that no rule explains, as nothing is wrong or nothing can
be told.
"""

from tracekit.base.pages import Cure
from tracekit.findings.page import COMPILE, FindingPage, declare

# Every verdict, and the sentence for it if no finding says the same.
VERDICTS = {
    "empty": "No event with a duration was recorded",
    "unknown": "What bounds a step is unknown",
    "too_little_recorded": "Too little was recorded to say what bounds a step",
    "gpu_side_missing": "What the GPU did was not recorded",
    "host_side_missing": "What the host did was not recorded",
    "gpu_bound_gemm": "GPU-bound, mostly by matrix products and convolutions",
    "gpu_bound_memory_bound": "GPU-bound, mostly by moving data",
    "gpu_bound_other": "GPU-bound",
    "cuda_graph_ok_gpu_bound": "GPU-bound; launches cost nothing, thanks to CUDA graphs",
    "queued_not_started": "Queued work does not start, although the GPU idles",
    "graphs_recorded": "Recording CUDA graphs anew takes most of the time",
    "graphs_prepared": "Preparing CUDA graphs for new sizes takes most of the time",
    "launch_bound": "Submitting work to the GPU takes most of the time",
    "dispatch_bound": "Dispatching operators takes most of the time",
    "python_bound": "Python takes most of the time",
    "allocator": "Allocating and freeing device memory takes most of the time",
    "garbage_collection": "Collecting garbage takes most of the time",
    "optimizer_loop": "Updating parameters one by one takes most of the time",
    "zero_grad": "Setting gradients to zero one by one takes most of the time",
    "operator_loop": "Looping over rows takes most of the time",
    "sync_stall": "The GPU idles mostly because the host waited for it",
    "dataloader_bound": "Waiting for the next batch takes most of the time",
    "h2d_pageable_copy": "Copies take most of the time",
    "late_rank": "One rank delays the others",
    "exposed_comm": "Communication that no computation overlaps takes most of the time",
    "compile_in_steps": "Compiling takes most of the time",
    "recompiles": "Recompiling takes most of the time",
    "cold_start": "First calls take most of the time",
    "host_freeze": "The host is stalled most of the time",
    "cpu_compute": "Operators compute on the CPU",
    "preprocessing": "Preparing data in the loop takes most of the time",
    "backward_handover": "Backward changes threads most of the time",
    "idle_unexplained": "The profiler itself takes most of the time",  # only a finding can say that nothing explains it
}
_CUTTING = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
_NO_DEFECT = """It is a verdict on the step, not a defect: it is listed where the first finding does not say what
    bounds the step, or costs clearly less than the GPU's work does."""
_WORK_COST = """It claims the GPU's work, computing and copying, without what other findings count: what a step would
    save if that work were free, an upper bound that no change reaches."""
_KIND = """Kernels are sorted by their names and operators into kinds of work, and the kind with most time names the
    verdict. A kernel of an unknown name may be sorted wrongly."""
_LESS = Cure("Do less of it: smaller models, fewer sampled neighbours, fewer layers.", "results")
_HALF = Cure("Compute in bfloat16 or TF32, where the model tolerates it.", "results")

_PAGES = (
    FindingPage(
        "gpu_bound_gemm",
        "The GPU sets the pace, mostly by matrix products",
        says="""Most of the step, the GPU works, and of its work most are matrix products and convolutions. The finding
            names the kernel that takes most of that, the phases and the modules.""",
        slow=_NO_DEFECT,
        cost=_WORK_COST,
        limits=f"{_KIND} A busy GPU may still be used badly: see `low_occupancy`, `without_tensor_cores`.",
        cures=(_HALF, Cure("Pad sizes to multiples of 8. Padding must be masked in the loss.", "rounding"), _LESS),
        links=(_CUTTING,),
    ),
    FindingPage(
        "gpu_bound_memory_bound",
        "The GPU sets the pace, mostly by moving data",
        says="""Most of the step, the GPU works, and most of its work moves data: elementwise kernels, gathers and
            scatters of message passing, sparse products, sorts, copies. With recorded shapes, the finding says how
            much of the memory's bandwidth large elementwise kernels reach.""",
        slow=f"""{_NO_DEFECT} Message passing reads a row of features for each edge and adds it up at a node: it is
            bound by memory, and by how randomly the rows lie there.""",
        cost=_WORK_COST,
        limits=f"{_KIND} That a kernel is bound by memory is concluded from its kind, not measured.",
        cures=(
            COMPILE,
            Cure(
                "Sort the edges, and use sparse or segmented products (`torch_geometric.EdgeIndex`, `SparseTensor`).",
                "rounding",
            ),
            Cure(
                """Where nodes add up or average what they gather, multiply features by the layer's weights before, if
                that leaves fewer of them.""",
                "rounding",
            ),
            _HALF,
            _LESS,
        ),
        links=(_CUTTING,),
    ),
    FindingPage(
        "gpu_bound_other",
        "The GPU sets the pace",
        says="""Most of the step, the GPU works, and most of its work is neither products nor moving data: fused
            attention, recurrent layers, Fourier transforms, linear algebra, or kernels of a kind that is not known.""",
        slow=_NO_DEFECT,
        cost=_WORK_COST,
        limits=f"{_KIND} Kernels of your own or of a library count here.",
        cures=(_HALF, _LESS),
        links=(_CUTTING,),
    ),
    FindingPage(
        "cuda_graph_ok_gpu_bound",
        "The GPU sets the pace, and CUDA graphs feed it",
        says="Most of the step, the GPU works, and more than half of its activities are replayed from CUDA graphs.",
        slow=f"{_NO_DEFECT} Launches cost nothing any more: only less work makes the step shorter.",
        cost=_WORK_COST,
        limits=f"{_KIND} In a bare trace, kernels of a replay are linked to the replay, not to operators or lines.",
        cures=(_HALF, COMPILE, _LESS),
        links=(_CUTTING,),
    ),
    FindingPage(
        "unknown",
        "What bounds a step is unknown",
        says="""The trace breaks a law so that the GPU's work, its idle time, the host's time, the steps, or which of
            several causes a time has must not be believed. The sentence says which law.""",
        slow="Nothing can be said: a wrong answer would be worse than none.",
        cost="It has no cost.",
        limits="Figures that the breach does not spoil are still shown.",
        cures=(
            Cure("Look the law up with `tracekit explain-finding`, and record again as it says.", "changes nothing"),
        ),
        replayed=False,
    ),
    FindingPage(
        "too_little_recorded",
        "Too little was recorded",
        says="""The recording is too short to say anything of a step (less than 0.1 ms; or less than 1 ms with fewer
            than 20 events), or less than half of the step is known: what the GPU did, or what the host did.""",
        slow="Nothing can be said of a step.",
        cost="It has no cost; findings are listed only if they have none, or claim at least half of the step.",
        limits="What the known part shows may hold for all of it, or not.",
        cures=(Cure("Record several whole steps, host and GPU.", "changes nothing"),),
        links=("https://docs.pytorch.org/docs/stable/profiler.html",),
        replayed=False,
    ),
)
for _page in _PAGES:
    declare(_page)
