#!/bin/sh
# Holds the gates and runs the tests beside this file. Ends with 0 where everything is kept, else with pytest's exit code.
#   check.sh [JUNIT_XML [more arguments of pytest]]
set -eu
report="${1:-gates.xml}"
[ $# -eq 0 ] || shift
case "$report" in
  /*) ;;
  *) report="$PWD/$report" ;;
esac
cd "$(dirname "$0")"
exec "${PYTHON:-python3}" -m pytest . --evaltools-gates gates.toml --junit-xml="$report" -rs "$@"
