"""The server of children: ``python -m evaltools.runtime.process DESCRIPTOR``."""

import socket
import sys

from evaltools.runtime.process.server import serve

if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
