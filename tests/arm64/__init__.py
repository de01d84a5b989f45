"""ARM64 below QEMU."""
