"""A program that does what a run does with its folder: ``imitated_run.py FOLDER ANSWERS CHILD FACTS``.

It finishes an example every 20 ms until its stdin ends, and prints how many it has finished. ANSWERS is 1 where it
answers captures, CHILD is 1 where it has a process of its own with 50 MB. FACTS are those that its journal has, as
JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

from evaltools.engine.capture_answer import CaptureAnswers
from evaltools.engine.journal import Finished, TaskJournal, open_journal
from evaltools.engine.process_memory import NamedProcess
from evaltools.engine.stages import Span
from evaltools.engine.task import Example, Record

CHILD = "held = bytearray(50 << 20); print('ready', flush=True); input()"
EXAMPLES = [Example(index, f"{index}.jpg") for index in range(100_000)]


def wait_for_end(end: threading.Event) -> None:
    sys.stdin.read()
    end.set()


def main() -> None:
    folder, answers, has_child = Path(sys.argv[1]), sys.argv[2] == "1", sys.argv[3] == "1"
    journal = open_journal(folder)
    journal.state(json.loads(sys.argv[4]))
    records: TaskJournal[float] = TaskJournal(journal, EXAMPLES, float)
    processes = [NamedProcess(0, "evaltools")]
    child = None
    if has_child:
        pipe = subprocess.PIPE
        child = subprocess.Popen([sys.executable, "-c", CHILD], stdin=pipe, stdout=pipe, text=True)
        assert child.stdout is not None
        child.stdout.readline()
        processes.append(NamedProcess(child.pid, "gpu, worker 0", "gpu"))
    end = threading.Event()
    threading.Thread(target=wait_for_end, args=(end,), daemon=True).start()
    done = 0
    with CaptureAnswers(folder if answers else None, lambda: processes) as answering:
        while not end.is_set():
            start_ns = time.perf_counter_ns()
            time.sleep(0.02)
            records.add(Finished(EXAMPLES[done], 5, [Record(EXAMPLES[done], "gpu", (1.0,), 0.5)]))
            done += 1
            spent_ns = time.perf_counter_ns() - start_ns
            answering.add(
                [
                    Span("decode", start_ns, spent_ns // 4 - 1000, 0, "a.jpg"),
                    Span("inference", start_ns + spent_ns // 4, spent_ns * 3 // 4 - 1000, 0, "gpu"),
                ],
                done,
            )
            if done == 30:
                print("ready", flush=True)
    records.flush()
    if child is not None:
        child.communicate("\n")
    print(done, flush=True)


if __name__ == "__main__":
    main()
