"""Sessions in processes of their own, each the child of the one above it.

* This process has a :class:`~evaltools.runtime.process.child.ChildProcess` for each child, and orders what that does.
* The server (:mod:`~evaltools.runtime.process.server`) has imported what children need, and forks.
* A supervisor for each child (:mod:`~evaltools.runtime.process.supervisor`) reports how it ended, and ends what is
  left.
* The child (:mod:`~evaltools.runtime.process.inside`) runs native code, and answers with values
  (:mod:`~evaltools.runtime.process.messages`), which lie partly in memory that it shares with this process
  (:mod:`~evaltools.runtime.process.shared_arrays`), as what it prints does (:mod:`~evaltools.runtime.process.printed`).

Whoever loses the process above ends: each has a socket on whose other end nobody is any more.
"""
