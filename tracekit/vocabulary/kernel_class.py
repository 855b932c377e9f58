"""What kind of work does a GPU kernel do?

The operator that launched it decides where that is known: `aten::addmm` multiplies matrices, whatever the library calls
its kernels, helpers such as split-K reductions included. Otherwise the kernel's name decides, by the first pattern that
matches. The names are those of PyTorch's own kernels, cuBLAS, cuDNN, CUTLASS, hipBLASLt (Tensile), MIOpen, CK, AITER,
FlashAttention, FBGEMM, NCCL and its relatives, CUB, and Inductor's Triton code.
"""

import re
from functools import cache, lru_cache

# Of operators, without their namespace's overload; the first pattern that matches the whole name.
_OPERATORS = (
    ("communication", r"c10d::.*|nccl:.*|_c10d_functional::.*|record_param_comms|symm_mem::.*"),
    (
        "attention",
        r".*(scaled_dot_product|flash_attn|flash_attention|efficient_attention|_fused_sdp|flex_attention|fmha).*",
    ),
    (
        "convolution",
        r"(aten|mkldnn|quantized)::_?((cudnn|miopen|mkldnn|slow|thnn)_)?(conv|depthwise).*|cudnn::.*conv.*|MIOpen.*Conv.*"
        r"|aten::(convolution|_convolution|convolution_backward|.*conv(_transpose)?[123]d.*|.*depthwise.*)",
    ),
    (
        "matmul",
        r"aten::(mm|bmm|addmm|addbmm|baddbmm|_addmm_activation|addmv|addmv_|mv|dot|vdot|ger|addr|matmul|linear|linear_backward|einsum"
        r"|_scaled_mm|_scaled_grouped_mm|_grouped_mm|_int_mm|_weight_int4pack_mm|_weight_int8pack_mm|chain_matmul|tensordot"
        r"|bilinear|_trilinear|inner|outer)(_out)?|(pyg|fbgemm|aiter|torch_ao|_C|vllm|bitsandbytes)::.*(gemm|matmul|_mm|scaled_mm).*",
    ),
    (
        "sparse",
        r"aten::(_sparse.*|sparse_.*|_coalesce|coalesce|hspmm|sspaddmm|smm|_spsm|s_native_addmm|_cslt.*|_convert_indices.*|_spmm.*)"
        r"|torch_sparse::.*|torch_spline_conv::.*|pyg::spmm.*",
    ),
    (
        "scatter/gather",
        r"aten::(_?index.*|gather|gather_backward|scatter.*|_scatter.*|take|take_along_dim|put_|masked_scatter.*|masked_select"
        r"|nonzero.*|segment_reduce|_segment_reduce_backward|repeat_interleave.*|bincount|_unsafe_index.*|_unsafe_masked_index.*)"
        r"|torch_scatter::.*|pyg::(segment|sampled|index|scatter|gather).*",
    ),
    (
        "embedding",
        r"aten::_?embedding.*|fbgemm::(split_embedding|dense_embedding|permute|jagged|bounds_check|block_bucketize|asynchronous).*"
        r"|split_embedding.*|.*EmbeddingBag.*",
    ),
    (
        "normalisation",
        r"aten::_?(native_|cudnn_|miopen_|fused_)?(batch|layer|group|instance|rms|local_response)_?norm.*|aten::_batch_norm.*"
        r"|aten::(_weight_norm.*|renorm.*)",
    ),
    ("pooling", r"aten::.*pool(ing)?[123]?d?.*|aten::upsample.*|aten::grid_sampler.*"),
    (
        "recurrent",
        r"aten::(_?(cudnn|miopen|thnn_fused)_?(rnn|lstm|gru).*|lstm.*|gru.*|rnn_.*|_thnn_(fused|differentiable)_.*)",
    ),
    ("optimizer", r"aten::(_fused_(adam|adamw|sgd|adagrad).*|_foreach_.*|_amp_.*)|Optimizer\..*"),
    (
        "sort",
        r"aten::(sort|stable_sort|argsort|topk|msort|kthvalue|_?unique.*|searchsorted|bucketize|randperm|mode|median.*)|pyg::.*sort.*",
    ),
    (
        "random",
        r"aten::(native_dropout|_fused_dropout|dropout_?|bernoulli_?.*|uniform_|normal_?|rand.*|exponential_|multinomial|random_|cauchy_"
        r"|geometric_|log_normal_)",
    ),
    (
        "reduction",
        r"aten::(sum|mean|nansum|prod|amax|amin|aminmax|max|min|all|any|argmax|argmin|norm|linalg_vector_norm|std|var|std_mean|var_mean"
        r"|logsumexp|_?softmax.*|_?log_softmax.*|_softmax_backward_data|_log_softmax_backward_data|cumsum.*|cumprod.*|count_nonzero"
        r"|_logcumsumexp|cross_entropy.*|nll_loss.*|.*_loss(_backward|_forward)?|logcumsumexp|histc|trace|equal)(_out)?",
    ),
    (
        "copy",
        r"aten::(copy_?|_to_copy|to|contiguous|clone|cat|stack|_copy_from.*|_cat|concat|repeat|roll|flip|im2col|col2im|resize_|pad|constant_pad_nd|tril|triu)",
    ),
    ("fft", r"aten::_fft.*|aten::fft_.*"),
    (
        "linear algebra",
        r"aten::_?linalg_(?!vector_norm).*|aten::(cholesky|lu_|triangular_solve|inverse|svd|qr|eig|symeig).*",
    ),
)
_NAMES = (
    (
        "communication",
        r"^(void )?(nccl|rccl|oneccl|mscclpp)|ep::(internode|intranode)|nvshmem|multimem_(all_|reduce_)"
        r"|(one|two)_shot_all_reduce|cross_device_reduce|quickreduce|allreduce_fusion",
    ),
    ("copy", r"^[Mm]em(cpy|set)\b|^__amd_rocclr_(copy|fill)"),
    (
        "attention",
        r"flash_(fwd|bwd|attn|attention|fprop|bprop)|flash::|sdpa|fmha|attn_(fwd|bwd)|attention|Attention|flashinfer|mha_(fwd|bwd|varlen)|paged_?attn|splitkv",
    ),
    ("matmul", r"^triton_(tem|mm|bmm)(_|$)"),
    ("reduction", r"^triton_(per|red)_|^triton_split_scan"),
    ("elementwise", r"^triton_(poi|for)_"),
    ("elementwise", r"rotary|rope_"),
    (
        "embedding",
        r"embedding|EmbeddingBag|fbgemm_gpu::|linearize_index|permute_pooled_embs|bounds_check_indices|recat_copy|bucketize_sparse"
        r"|l[xr]u_cache|jagged|compute_grad_weight",
    ),
    (
        "convolution",
        r"(^|[^a-z])[Cc]onv(?!ert)|[a-z]Conv(?!ert)|convol|[sh]cudnn|winograd|dgrad|wgrad|fprop|igemm_(fwd|bwd|wrw)|bwd_(weight|data)|im2col"
        r"|col2im|implicit_gemm"
        r"|gcgemm|cask_cudnn|[nN](chw|hwc)(To|2)[nN](chw|hwc)|scalePackedTensor|depthwise|^SubTensorOpWith|^batched_transpose_",
    ),
    (
        "normalisation",
        r"(batch|layer|group|instance|rms|Batch|Layer|Group|Instance|RMS)_?[nN]orm|RowwiseMoments|cuComputeGradInput|GammaBeta|(^|[^a-z])bn_(fw|bw|stat|inf)"
        r"|ComputeInternalGradients|ComputeFusedParams|(^|_)norm_(fwd|bwd)",
    ),
    (
        "matmul",
        r"(?<!fb)gemm|gemv|^Cijk_|nvjet|cublasLt|splitKreduce|wgmma|matmul|xmma"
        r"|^bmm_|^(void )?dot_kernel|^(void )?reduce_1Block_kernel"
        r"|(^|_)mm_kernel|wvSplitK|epilogue::impl::globalKernel|cutlass::(Kernel|device_kernel)|trmm|syrk|trsm|[mM]arlin|fused_moe",
    ),
    ("scatter/gather", r"segment_(csr|coo)|gather_(csr|coo)"),
    ("sparse", r"spmm|spmv|spgemm|sddmm|cusparse|csrmm|csrmv|csr2|csr_|_csr|coo_|coalesce|rocsparse"),
    (
        "optimizer",
        r"FusedAdam|FusedSgd|FusedOptimizer|AdamFunctor|fused_(adam|lamb|sgd)|LAMB|amp_update_scale|multi_tensor_apply|adam_cuda",
    ),
    ("pooling", r"max_?pool|avg_?pool|average_pool|MaxPool|AvgPool|upsample|interpolate|grid_sampl"),
    ("recurrent", r"lstm|gru_cell|RNN|rnn_|LSTM|GRU"),
    (
        "sort",
        r"[rR]adixSort|[mM]ergeSort|bitonicSort|radixFindKth|[tT]op[kK]|[uU]nique|DeviceSelect|kthvalue|searchsorted|RunLength|adjacent_?[dD]ifference"
        r"|DeviceReduceByKey|DeviceCompactInit|DevicePartition|segmented_sort",
    ),
    ("elementwise", r"arange_|linspace_"),
    (
        "scatter/gather",
        r"scatter|gather|index|Index|nonzero|masked_select|segment_(csr|coo|reduce|mean|sum|max)|write_indices|repeat_interleave|take_kernel|\bput_kernel"
        r"|bincount|kernelHistogram|to_dense_representation",
    ),
    ("random", r"dropout|distribution_|bernoulli|philox|curand|multinomial"),
    ("fft", r"fft"),
    (
        "reduction",
        r"reduce|[sS]oft[mM]ax|DeviceScan|scan_|_scan|cumsum|NLLCriterion|nll_loss|cross_entropy|[wW]elford|histogram|logsumexp|_sum_|SumKernel",
    ),
    (
        "copy",
        r"direct_copy|copy_device_to_device|CatArray|copy_kernel|bfloat16_copy|float16_copy|transpose|triu_tril|flip_kernel|roll_|pad[123]d|_pad_|Copy<|unpack",
    ),
    (
        "elementwise",
        r"elementwise|vectorized|unrolled|pointwise|Functor|fill|[tT]ypeConvert|activation|gelu|silu|swiglu|rotary|rope|OpTensor|quant",
    ),
    ("linear algebra", r"getr[fs]|potrf|geqrf|syev|gesv|cusolver|magma|trtri"),
)
_BRACKETS = re.compile(r"[<>(]")
UNKNOWN = "other"
_LONGEST = 20_000  # letters that are looked at: templates have some thousands, and a damaged name may have millions


@lru_cache(maxsize=1 << 16)
def kernel_class(name: str, operator: str | None = None) -> str:
    """The kind of work, by the launching operator or else by the kernel's name; `other` where neither shows it."""
    if operator is not None and len(operator) <= _LONGEST:
        label = next((label for label, pattern in _compiled(_OPERATORS) if pattern.fullmatch(operator)), None)
        if label is not None:
            return label
    function = without_parameters(name)
    return next((label for label, pattern in _compiled(_NAMES) if pattern.search(function)), UNKNOWN)


@cache
def _compiled(patterns: tuple[tuple[str, str], ...]) -> list[tuple[str, re.Pattern[str]]]:
    """The patterns for operators, or those for names of kernels, compiled on first use."""
    return [(label, re.compile(pattern)) for label, pattern in patterns]


def without_parameters(name: str) -> str:
    """The function and its template arguments, without the parameters, whose types may name other libraries."""
    name = name[:_LONGEST].replace("(anonymous namespace)::", "")
    depth = 0
    for bracket in _BRACKETS.finditer(name):
        if bracket[0] != "(":
            depth += 1 if bracket[0] == "<" else -1
        elif depth <= 0 and bracket.start():
            return name[: bracket.start()]
    return name
