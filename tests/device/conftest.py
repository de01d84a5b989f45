"""Fixtures for tests of devices."""

from __future__ import annotations

from tests.device.fixtures import breaking, client, devices, first, network, own_client, proxy
from tests.device.shared_folder import shared

__all__ = ["breaking", "client", "devices", "first", "network", "own_client", "proxy", "shared"]
