"""ARM64 on an x86-64 computer: a Python with the runtimes for ARM64, which QEMU's user mode runs.

What ``evaltools doctor --install=arm64`` makes is a box (:mod:`~evaltools.arm64.box`), a folder in the user's cache:

* ``root`` has Python and its libraries, from Debian's packages (:mod:`~evaltools.arm64.debian_packages`).
* ``site`` has the packages that evaltools needs, and the runtimes, from wheels.
* ``qemu`` has QEMU, where none was installed that runs the runtimes.
* ``python`` is the program that starts all of it.

Processes below see the files of this computer as they are. The kernels are those of ARM64; times are QEMU's.
"""
