"""YNNPACK: the experimental successor of XNNPACK, in recent native builds only."""

from typing import Final

from evaltools.delegates.provider import Delegate
from evaltools.parameter import Parameter

_PLATFORMS: Final = "LiteRT"

YNNPACK: Final = Delegate(
    name="YNNPACK",
    key="",
    enabled_by="use_ynnpack",
    parameters=(
        Parameter("use_ynnpack", "bool", False, "Apply the YNNPACK delegate.", _PLATFORMS, log="Use ynnpack"),
        Parameter(
            "ynnpack_static_shape",
            "bool",
            False,
            "Assume that shapes do not change.",
            _PLATFORMS,
            log="YNNPACK static shape",
        ),
        Parameter(
            "ynnpack_fast_math",
            "bool",
            False,
            "Allow faster, less exact arithmetic.",
            _PLATFORMS,
            log="YNNPACK fast math",
        ),
        Parameter(
            "ynnpack_consistent_arithmetic",
            "bool",
            False,
            "Same arithmetic on every processor.",
            _PLATFORMS,
            log="YNNPACK consistent arithmetic",
        ),
        Parameter(
            "ynnpack_no_excess_precision",
            "bool",
            False,
            "Round every intermediate to the tensor's type.",
            _PLATFORMS,
            log="YNNPACK no excess precision",
        ),
    ),
    works_in="native LiteRT tools built with YNNPACK",
    owns_device=False,
)
