# shellcheck shell=bash
# Sourced by scripts/study, scripts/test and .ci/run: brings a bare Debian 12 or Ubuntu 24.04 to
# where the project builds, installing only what is missing. Where all is there it touches no
# network.

set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

say() { if [ -t 2 ]; then printf '\033[1m%s\033[0m\n' "$*"; else printf '%s\n' "$*"; fi >&2; }
fail() { say "$(basename "$0"): $*"; exit 1; }

# Runs a program that a signal to this script alone ends too. Bash would leave it running, and has
# what runs beside it ignore two signals.
attend() {
  local status=0 signal
  setsid env --default-signal=INT,QUIT "$@" </dev/null &
  for signal in HUP INT TERM; do trap "end_attended $! $signal" "$signal"; done
  wait $! || status=$?
  trap - HUP INT TERM
  return "$status"
}

end_attended() {  # PID SIGNAL
  trap - HUP INT TERM
  { kill -- "-$1" || kill "$1"; wait "$1"; } 2>/dev/null || true
  [ "$2" != INT ] || kill -INT $$  # so that a loop in the caller's shell ends too
  exit $((128 + $(kill -l "$2")))
}

# Installs the Debian packages that are missing; where it cannot, it says which they are.
need_packages() {
  local missing=() package sudo=()
  for package in "$@"; do
    [[ $(dpkg-query -W -f='${Status}' "$package" 2>/dev/null) == *"ok installed" ]] ||
      missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if ! command -v apt-get >/dev/null; then
    say "missing, and no apt-get to install it with: ${missing[*]}"
    return 1
  fi
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      say "missing, and neither root nor sudo to install it with: ${missing[*]}"
      return 1
    fi
    sudo=(sudo)
  fi
  say "installing ${missing[*]}"
  # Another apt may be running on a machine that has just started.
  local apt=("${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -qq)
  if ! { "${apt[@]}" update && "${apt[@]}" install --no-install-recommends -y "${missing[@]}"; } \
      >/dev/null; then
    say "apt-get could not install ${missing[*]}"
    return 1
  fi
}

# Sets `python` to one that has the packages named: that of .venv, or the system's; where neither
# has, .venv is made or completed with the pinned versions.
setup_python() {
  for python in .venv/bin/python python3; do
    if has_python_packages "$@"; then return; fi
  done
  python=.venv/bin/python
  if ! "$python" -m pip --version >/dev/null 2>&1; then
    if ! can_make_venv; then
      need_packages python3 python3-venv || exit 1
      can_make_venv || fail "needs Python 3.11 or later"
    fi
    say "making .venv"
    python3 -m venv --clear .venv || fail "cannot make .venv"
  fi
  say "installing Python packages into .venv"
  "$python" -m pip install -q --disable-pip-version-check -r scripts/requirements.txt ||
    fail "pip could not install scripts/requirements.txt into .venv"
}

can_make_venv() {
  python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

# Whether `python` has the packages named, in versions that pyproject.toml allows.
has_python_packages() {
  "$python" - "$@" <<'PYTHON' 2>/dev/null
import importlib.metadata, pathlib, sys, tomllib
from packaging.requirements import Requirement

project = tomllib.loads(pathlib.Path("pyproject.toml").read_text())["project"]
lines = project["dependencies"] + project["optional-dependencies"]["dev"]
wanted = {wish.name: wish.specifier for wish in map(Requirement, lines)}
sys.exit(any(importlib.metadata.version(name) not in wanted[name] for name in sys.argv[1:]))
PYTHON
}

ladder() { PYTHONPATH="$root/scripts" "$python" -m ladder "$@"; }

# Finds an nvcc that is new enough, also where the toolkit is installed but not on the PATH.
has_nvcc() {
  new_enough nvcc && return
  local dir
  for dir in "${CUDA_HOME:-/usr/local/cuda}/bin" /usr/local/cuda/bin; do
    if new_enough "$dir/nvcc"; then
      PATH=$dir:$PATH
      return
    fi
  done
  return 1
}

new_enough() {
  local version
  version=$("$1" --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\),.*/\1/p') || return
  [ -n "$version" ] && printf '12.6\n%s\n' "$version" | sort -VC
}

has_gpu() { [[ $(nvidia-smi -L 2>/dev/null) == "GPU 0"* ]]; }

# Makes build/default ready, installing what that needs; where it cannot, it says why.
configure() {
  # First with what is there. After that CMake starts afresh, since its cache may come from other
  # compilers or from where the checkout was before, and fetches the libraries that no package gave.
  if has_tools && run_cmake -DFETCHCONTENT_FULLY_DISCONNECTED=ON; then return; fi
  need_packages cmake ninja-build g++ libbenchmark-dev libtomlplusplus-dev libgtest-dev ||
    has_tools || return 1
  if run_cmake --fresh -DFETCHCONTENT_FULLY_DISCONNECTED=OFF; then return; fi
  grep -m 1 -A 5 'CMake Error' build/configure.log >&2 || true
  say "CMake cannot configure the build: see build/configure.log"
  return 1
}

has_tools() { command -v cmake && command -v ninja && command -v c++; } >/dev/null

run_cmake() {
  local cuda=OFF
  if has_nvcc; then cuda=ON; fi
  mkdir -p build
  cmake --preset default -DLADDERS_CUDA=$cuda "$@" \
    ${LADDERS_COMMIT:+-DLADDERS_COMMIT="$LADDERS_COMMIT"} >build/configure.log 2>&1
}

# Whether ladder_bench is built: CMake does without an nvcc that it cannot use.
has_cuda_build() { grep -q '^build ladder_bench:' build/default/build.ninja; }

# Builds targets in build/default.
compile() {
  say "building"
  attend cmake --build --preset default --target "$@" >&2
}
