"""Stable delegate: a delegate behind the stable C ABI, described by a settings file."""

from typing import Final

from evaltools.delegates.provider import Delegate
from evaltools.parameter import Parameter

STABLE: Final = Delegate(
    name="STABLE_DELEGATE",
    key="",
    enabled_by="stable_delegate_settings_file",
    parameters=(
        Parameter(
            "stable_delegate_settings_file",
            "JSON file (TFLiteSettings) with stable_delegate_loader_settings.delegate_path; a path switches it on.",
            platforms="all but Windows",
            log="Delegate settings file path",
            role="settings_file",
        ),
    ),
    works_in="the native tools (the Python interpreters cannot load stable-ABI delegates)",
)
