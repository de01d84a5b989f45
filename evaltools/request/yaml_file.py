"""Reads YAML files that users write: safely, and without losing a key that stands twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final

import yaml

from evaltools.documents import yaml_values
from evaltools.errors import UsageError
from evaltools.file_content import Unreadable, text_of

_MERGE: Final = "tag:yaml.org,2002:merge"
_MOST_MERGED_KEYS: Final = 10_000


class _Loader(yaml.SafeLoader):
    """A safe loader that refuses a mapping with the same key twice, which YAML forbids and PyYAML accepts.

    Merge keys (``<<: *base``) work; files that merge without end are refused.
    """

    _merged_keys = 0

    def compose_mapping_node(self, anchor: dict[Any, yaml.Node]) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        keys = (key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE)
        for key, count in Counter(keys).items():
            if count > 1:
                raise yaml.YAMLError(f"the key {key!r} stands twice, at line {node.start_mark.line + 1} and after")
        return node

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Replaces merge keys by what they merge: a mapping's own keys win, then those of the mapping named first.

        PyYAML's own releases differ in which one wins (6.0.4: mostly the last).
        """
        own = [pair for pair in node.value if pair[0].tag != _MERGE]
        merged: dict[object, tuple[yaml.Node, yaml.Node]] = {}
        for _, value in (pair for pair in node.value if pair[0].tag == _MERGE):
            for mapping in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                if not isinstance(mapping, yaml.MappingNode):
                    raise yaml.YAMLError(f"line {mapping.start_mark.line + 1} merges what is not a mapping")
                self.flatten_mapping(mapping)
                for pair in mapping.value:
                    merged.setdefault(_same_key(pair[0]), pair)
        self._merged_keys += len(merged)
        if self._merged_keys > _MOST_MERGED_KEYS:
            raise yaml.YAMLError(f"it merges more than {_MOST_MERGED_KEYS} keys")
        merged.update({_same_key(pair[0]): pair for pair in own})
        node.value = list(merged.values())
        super().flatten_mapping(node)


def _same_key(key: yaml.Node) -> object:
    """Equal for keys that are the same text of the same type; any other key is like none."""
    return (key.tag, key.value) if isinstance(key, yaml.ScalarNode) else id(key)


def read_yaml(path: Path, flag: str) -> Any:
    """The content of the YAML file of a flag as plain Python values; raises :class:`UsageError` with the reason."""
    where = f"{flag}={path}"
    try:
        return yaml_values(text_of(path), _Loader)
    except Unreadable as error:
        raise UsageError(f"{where} cannot be read: {error}") from error
    except ValueError as error:
        raise UsageError(f"{where} is not valid YAML: {error}") from error
