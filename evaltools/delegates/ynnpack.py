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
        Parameter("use_ynnpack", "Apply the YNNPACK delegate.", default=False, platforms=_PLATFORMS, log="Use ynnpack"),
        Parameter(
            "ynnpack_static_shape",
            "Assume that shapes do not change.",
            default=False,
            platforms=_PLATFORMS,
            log="YNNPACK static shape",
        ),
        Parameter(
            "ynnpack_fast_math",
            "Allow faster, less exact arithmetic.",
            default=False,
            platforms=_PLATFORMS,
            log="YNNPACK fast math",
        ),
        Parameter(
            "ynnpack_consistent_arithmetic",
            "Same arithmetic on every processor.",
            default=False,
            platforms=_PLATFORMS,
            log="YNNPACK consistent arithmetic",
        ),
        Parameter(
            "ynnpack_no_excess_precision",
            "Round every intermediate to the tensor's type.",
            default=False,
            platforms=_PLATFORMS,
            log="YNNPACK no excess precision",
        ),
    ),
    works_in="native LiteRT tools built with YNNPACK",
    owns_device=False,
)
