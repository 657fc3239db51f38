"""What torch and its libraries are told about the processor, before they load."""

import os

LIMITS = {"default": "AVX2", "avx2": "AVX2"}
"""oneDNN's instructions by the value of ATEN_CPU_CAPABILITY."""


def settle_processor() -> None:
    """Set what is read once, when torch loads or first computes; what the user has set stays.

    OpenMP's threads sleep while they wait: spinning costs more than tenfold where processors are
    shared. oneDNN keeps to the instructions that torch is limited to: otherwise torch's attention
    in half precision packs matrices for AMX and fails, because its own code may not use AVX-512.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    limit = LIMITS.get(os.environ.get("ATEN_CPU_CAPABILITY", "").lower())
    if limit is not None:
        os.environ.setdefault("ONEDNN_MAX_CPU_ISA", limit)
