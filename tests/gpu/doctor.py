"""Does the doctor agree with what the other sections have shown?"""

import json

from tests.gpu.claims import Claims
from tests.gpu.running import tracekit


def check(claims: Claims) -> None:
    """Run it as its user would, once for people and once for machines."""
    done = tracekit("doctor", "--json", seconds=claims.seconds(80))
    if not done.stdout:
        claims.that(False, "doctor: answers", exit_code=done.returncode)
        return
    checks = {each["name"]: each for each in json.loads(done.stdout)["checks"]}
    for each in checks.values():
        claims.note(f"{each['name']}: {each['text']}")
    claims.that(done.returncode == 0, "doctor: this machine can capture", exit_code=done.returncode)
    if claims.on_gpu:
        for name in ("GPU", "GPU driver", "GPU kernels in traces", "torch.compile on the GPU"):
            claims.that(checks[name]["ok"], f"doctor: {name}", said=checks[name]["text"])
