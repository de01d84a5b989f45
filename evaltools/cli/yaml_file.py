"""Reads YAML files that users write: safely, and without losing a key that stands twice."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from evaltools.errors import UsageError


class _UniqueKeyLoader(yaml.SafeLoader):
    """A safe loader that refuses a mapping with the same key twice, which YAML forbids and PyYAML accepts."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.YAMLError(f"the key {key!r} stands twice, at line {node.start_mark.line + 1} and after")
        return super().construct_mapping(node, deep)


def read_yaml(path: Path, flag: str) -> Any:
    """The content of a YAML file as plain Python values; raises :class:`UsageError` with the reason."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _UniqueKeyLoader)
    except OSError as error:
        raise UsageError(f"{flag}={path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise UsageError(f"{flag}={path} is no valid YAML: {' '.join(str(error).split())}") from error
