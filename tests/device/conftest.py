"""Fixtures for tests of devices."""

from __future__ import annotations

from tests.device.fixtures import client, devices, network, own_client, proxy
from tests.device.shared_folder import shared

__all__ = ["client", "devices", "network", "own_client", "proxy", "shared"]
