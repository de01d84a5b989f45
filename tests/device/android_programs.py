"""Android's programs for apps and their log, as sh programs of a device that has none: they behave as documented.

Everything is kept in ``/data/local/tmp/android``: ``log``, ``installed`` (a package and its activity in each line),
``app.pid`` (the process that was started last; empty when it has been ended), and a file for each property. ``mode``
says what the app does.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Final

from tests.device.real_device import RealDevice

FOLDER: Final = "/data/local/tmp/android"
SYSTEM: Final = 1812
"""The process of Android's own messages."""
OTHER_APP: Final = 3021
"""The process of another app that uses TensorFlow Lite."""

_LOG: Final = r"""#!/bin/sh
# log [-p LEVEL] [-t TAG] TEXT; the process is that of LOG_PID. All lines of TEXT appear at once.
level=I tag=log
while getopts p:t: option; do
  case $option in p) level=$OPTARG ;; t) tag=$OPTARG ;; *) exit 1 ;; esac
done
shift $((OPTIND - 1))
process=${LOG_PID:-$$}
before=$(printf '%s %5d %5d %s %-8s: ' "$(date '+%m-%d %H:%M:%S.%3N')" $process $process "$level" "$tag")
printf '%s\n' "$*" | sed "s|^|$before|" >>FOLDER/log
"""
_LOGCAT: Final = r"""#!/bin/sh
# logcat -v threadtime -T TIME goes on with what is logged from now on.
[ "$1 $2 $3" = "-v threadtime -T" ] || { echo "logcat: unknown option in $*" >&2; exit 1; }
echo '--------- beginning of main'
exec tail -n +1 -f FOLDER/log
"""
_AM: Final = r"""#!/bin/sh
# am start [-S] -n PACKAGE/ACTIVITY --es NAME TEXT, am force-stop PACKAGE
end() {
  if [ -s FOLDER/app.pid ]; then
    # First the app alone, which may not lead its group yet.
    process=$(cat FOLDER/app.pid)
    kill -9 $process 2>/dev/null
    kill -9 -$process 2>/dev/null
    LOG_PID=SYSTEM log -t ActivityManager "Force stopping $1 appid=10217 user=0: from pid $$"
    : >FOLDER/app.pid
  fi
}
command=$1
shift
if [ "$command" = force-stop ]; then end "$1"; exit; fi
[ "$command" = start ] || { echo "Unknown command: $command" >&2; exit 255; }
stops=
while [ $# -gt 0 ]; do
  case $1 in
  -S) stops=1 ;;
  -n) component=$2; shift ;;
  --es) name=$2 text=$3; shift 2 ;;
  *) echo "Error: Unknown option: $1" >&2; exit 1 ;;
  esac
  shift
done
package=${component%%/*}
if [ $stops ]; then echo "Stopping: $package"; end "$package"; fi
echo "Starting: Intent { cmp=$component (has extras) }"
if ! grep -qxF "$component" FOLDER/installed; then
  echo "Error type 3"
  echo "Error: Activity class {$package/$package${component#*/}} does not exist."
  exit 1
fi
setsid PYTHON FOLDER/app.py "$package" "$name" "$text" >/dev/null 2>&1 </dev/null &
printf %s $! >FOLDER/app.pid
"""
_PM: Final = r"""#!/bin/sh
# pm path PACKAGE, pm install -r -d -g APK; the first line of the APK is what the device makes of it.
case $1 in
path) grep -q "^$2/" FOLDER/installed && echo "package:/data/app/$2/base.apk" ;;
install)
  [ "$2 $3 $4" = "-r -d -g" ] || { echo "Error: Unknown option: $*" >&2; exit 1; }
  answer=$(head -n 1 "$5")
  echo "$answer"
  [ "$answer" = Success ]
  ;;
esac
"""
_GETPROP: Final = r"""#!/bin/sh
cat "FOLDER/property.$1" 2>/dev/null || echo
"""
_APP: Final = r'''"""The benchmark app: logs what ``evaltools benchmark`` prints for the flags in its intent."""
import os, subprocess, sys, time
from pathlib import Path

package, name, text = sys.argv[1:]
folder = Path("FOLDER")
while (folder / "app.pid").read_text() != str(os.getpid()):
    time.sleep(0.01)
mode = (folder / "mode").read_text()


def log(level, tag, text, process=os.getpid()):
    subprocess.run(["log", "-p", level, "-t", tag, text], env={**os.environ, "LOG_PID": str(process)}, check=True)


log("I", "ActivityManager", f"Start proc {os.getpid()}:{package}/u0a217 for pre-top-activity {{x}}", SYSTEM)
if name != "args":
    sys.exit("the name of the flags is args")
log("I", "tflite_BenchmarkModelActivity", "Running TensorFlow Lite benchmark with args: " + text)
log("I", "tflite", "STARTING!", OTHER)
log("I", "tflite", "Replacing 3 node(s) with delegate (TfLiteGpuDelegateV2) node, yielding 1 partitions.", OTHER)
if mode == "signal":
    log("I", "tflite", "STARTING!")
    log("E", "tflite", "Failed to read the input_layer_value_file:/x")
    log("F", "libc", f"Fatal signal 6 (SIGABRT), code -1 (SI_QUEUE) in tid {os.getpid()} (te.benchmark)")
elif mode == "gives up":
    log("I", "tflite", "STARTING!")
    log("E", "tflite", "Failed to load model /no/such/file")
elif mode == "hang":
    log("I", "tflite", "STARTING!")
    time.sleep(600)
else:
    command = [sys.executable, "-m", "evaltools.cli.main", "benchmark", *text.split()]
    levels = {"INFO": "I", "WARN": "W", "ERROR": "E"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        for line in process.stdout:
            word, _, rest = line.rstrip("\n").partition(": ")
            if word in levels:
                log(levels[word], "tflite", rest)
'''


def add_android(device: RealDevice, *components: str) -> None:
    """Give a device Android's programs, and these activities, such as ``org.app/.Activity``."""
    programs = {
        "log": _LOG, "logcat": _LOGCAT, "am": _AM, "pm": _PM, "getprop": _GETPROP,
    }  # fmt: skip
    for name, text in programs.items():
        device.add_program(name, _filled(text))
    folder = device.folder / "android"
    folder.mkdir(exist_ok=True)
    (folder / "app.py").write_text(_filled(_APP))
    (folder / "installed").write_text("".join(f"{component}\n" for component in components))
    for name, text in (("log", ""), ("mode", ""), ("app.pid", "")):
        (folder / name).write_text(text)


def kept(device: RealDevice, name: str) -> Path:
    """A file of Android's, as the outside sees it."""
    return device.folder / "android" / name


def _filled(text: str) -> str:
    for word, value in (
        ("FOLDER", FOLDER),
        ("PYTHON", shlex.quote(sys.executable)),
        ("SYSTEM", SYSTEM),
        ("OTHER", OTHER_APP),
    ):
        text = text.replace(word, str(value))
    return text
