"""Other ways to compute the same on the CPU, that a delegate's errors are held against."""

from __future__ import annotations

from evaltools.configuration import Configuration


def other_kernels(tested: Configuration, half: bool = False) -> Configuration:
    """XNNPACK, in fp16 with ``half``; for what is XNNPACK itself, which must not judge itself, the reference kernels.

    >>> other_kernels(Configuration.from_text("npu", "external_delegate_path=npu.so")).to_flags()
    ['--use_xnnpack=true']
    >>> other_kernels(Configuration.from_text("cpu", "use_xnnpack=true")).to_flags()
    ['--kernels=reference']
    """
    if is_xnnpack(tested):
        return Configuration.from_text("reference kernels", "kernels=reference num_threads=1")
    return Configuration.from_text("xnnpack", f"use_xnnpack=true num_threads=1{' xnnpack_force_fp16=true' * half}")


def is_xnnpack(configuration: Configuration) -> bool:
    """Whether XNNPACK runs what is tested: asked for, or by default as nothing else is."""
    requested = [delegate.name for delegate in configuration.delegates.requested]
    return not requested or "XNNPACK" in requested
