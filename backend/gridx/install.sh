#!/bin/sh
# Installs the Grid-X worker into a virtual environment of its own. It needs no root, and changes nothing else on this machine.
#
#   PYTHON=python3.12          the interpreter to use (3.11 or newer)
#   GRIDX_WORKER_HOME=FOLDER   where the environment is made; default ~/.gridx-worker
#
# The two wheels of Grid-X come from the server named below and are checked against their SHA-256. What they need comes from your own
# package index, as your pip is configured.
set -eu

server=@SERVER@
version=@VERSION@
protocol_wheel=@PROTOCOL_WHEEL@
worker_wheel=@WORKER_WHEEL@

fail() {
  echo "Grid-X: $1" >&2
  exit 1
}

is_new_enough() {
  "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
  for name in ${PYTHON:+"$PYTHON"} python3 python3.14 python3.13 python3.12 python3.11 python; do
    if is_new_enough "$name"; then
      echo "$name"
      return
    fi
    [ "$name" != "${PYTHON:-}" ] || fail "PYTHON=$PYTHON is not a Python 3.11 or newer"
  done
  fail "the worker needs Python 3.11 or newer, and none was found; name one with PYTHON=..."
}

# Everything stands in a function, so that a script that was cut on its way does nothing.
main() {
  folder=${GRIDX_WORKER_HOME:-"$HOME/.gridx-worker"}
  python=$(find_python)
  echo "Grid-X worker $version: into $folder/venv, with $("$python" --version 2>&1)"
  mkdir -p "$folder"
  "$python" -c 'import ensurepip, venv' 2>/dev/null \
    || fail "this Python cannot make virtual environments; on Debian and Ubuntu: apt-get install python3-venv"
  "$python" -m venv "$folder/venv"

  # By themselves and by force first: a rebuilt wheel of the same version counts as installed already.
  "$folder/venv/bin/python" -m pip --disable-pip-version-check install --quiet --force-reinstall --no-deps "$protocol_wheel" "$worker_wheel" \
    || fail "the wheels could not be fetched from $server"
  "$folder/venv/bin/python" -m pip --disable-pip-version-check install --quiet "gridx-worker==$version" "gridx-protocol==$version" \
    || fail "the packages that the worker needs could not be installed from your package index"

  "$folder/venv/bin/gridx-worker" --version >/dev/null || fail "the worker was installed but does not start"
  echo "Installed. Run it with the key that the Machines page shows when you add a machine:"
  echo
  echo "  GRIDX_KEY=... $folder/venv/bin/gridx-worker run --server $server"
  echo
  echo "or with install instead of run, as a service of yours that also comes back after a reboot. doctor tells whether the machine is fit."
  echo
  if ! command -v docker >/dev/null 2>&1; then
    echo "Docker was not found here. The worker runs strangers' scripts in Docker only: install and start it first."
  fi
}

main "$@"
