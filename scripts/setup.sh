# Sourced by scripts/study and scripts/test: brings a bare Debian 12 or Ubuntu 24.04 to where the
# project builds, installing only what is missing. Where all is there it touches no network.

set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

say() { printf '\033[1m%s\033[0m\n' "$*" >&2; }
fail() { say "$(basename "$0"): $*"; exit 1; }

# Installs the Debian packages that are missing. Where it cannot, it says so and goes on: what
# really is missing is found out by who needs it.
need_packages() {
  local missing=() package sudo=()
  command -v dpkg >/dev/null || { say "not a Debian: $* are taken to be there"; return 0; }
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { say "neither root nor sudo: cannot install ${missing[*]}"; return 0; }
    sudo=(sudo)
  fi
  say "installing ${missing[*]}"
  # Another apt may be running on a machine that has just started.
  local apt=("${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -qq)
  { "${apt[@]}" update && "${apt[@]}" install --no-install-recommends -y "${missing[@]}" >/dev/null; } ||
    say "could not install ${missing[*]}"
}

# Sets `python` to one that has every package named: the system's if it does, else a .venv with
# the pinned versions.
python=python3
setup_python() {
  if command -v python3 >/dev/null && [ ! -e .venv ] && has_modules python3 "$@"; then
    return
  fi
  python=.venv/bin/python
  local stamp=.venv/requirements.txt
  cmp -s scripts/requirements.txt "$stamp" && return
  if ! python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    need_packages python3 python3-venv
  fi
  say "installing Python packages into .venv"
  python3 -m venv .venv || fail "needs Python 3.11 or later with venv"
  "$python" -m pip install -q --disable-pip-version-check -r scripts/requirements.txt
  cp scripts/requirements.txt "$stamp"
}

has_modules() {
  local interpreter=$1
  shift
  "$interpreter" - "$@" <<'PYTHON' 2>/dev/null
import importlib, sys
sys.exit(sys.version_info < (3, 11) or any(importlib.import_module(m) is None for m in sys.argv[1:])
         or tuple(map(int, importlib.import_module("matplotlib").__version__.split(".")[:2])) < (3, 10))
PYTHON
}

ladder() { PYTHONPATH="$root/scripts" "$python" -m ladder "$@"; }

# Finds nvcc, also where the toolkit is installed but not on the PATH.
has_nvcc() {
  command -v nvcc >/dev/null && return
  [ -x /usr/local/cuda/bin/nvcc ] && PATH=/usr/local/cuda/bin:$PATH
}

has_gpu() { command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q '^GPU 0'; }

# Builds ladder_bench and the tests in build/default.
build() {
  if ! command -v cmake >/dev/null || ! command -v ninja >/dev/null || ! command -v c++ >/dev/null ||
     ! [ -e /usr/include/benchmark/benchmark.h ] || ! [ -e /usr/include/gtest/gtest.h ]; then
    need_packages cmake ninja-build g++ libbenchmark-dev libgtest-dev
  fi
  say "building"
  cmake --preset default ${LADDERS_COMMIT:+-DLADDERS_COMMIT="$LADDERS_COMMIT"} >/dev/null
  cmake --build --preset default >&2
}
