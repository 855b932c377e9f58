"""What can each backend of torch.compile change? A backend that is not listed here may change anything."""

from msgspec import Struct

DEFAULT = "inductor"


class Backend(Struct, frozen=True):
    """What compiling with a backend can do to a step, beside running less Python."""

    name: str
    fuses: bool  # it generates kernels that do the work of several operators
    cuda_graphs: bool  # it can record CUDA graphs, always or in some modes


_ALL = (
    Backend(DEFAULT, fuses=True, cuda_graphs=True),
    Backend("cudagraphs", fuses=False, cuda_graphs=True),
    *(
        Backend(name, fuses=False, cuda_graphs=False)
        for name in (
            "eager",
            "eager_debug",
            "eager_noexcept",
            "aot_eager",
            "aot_eager_default_partitioner",
        )
    ),
)
BACKENDS = {backend.name: backend for backend in _ALL}
