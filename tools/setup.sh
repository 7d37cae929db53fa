#!/usr/bin/env bash
# Installs what is missing, and nothing that is there. Usage: tools/setup.sh build | npm | python | postgres | demo | all | anvil
#
#   build     a C++ compiler and libclang (RocksDB is compiled, its bindings are generated)
#   npm       node, npm and the packages pinned in tools/package-lock.json (anvil, solc, ethers, clients of Etherscan)
#   python    python and, in tools/python, the packages pinned in tests/clients/requirements.txt
#   postgres  a PostgreSQL server for tests, where that asks nobody for a password; never a reason to fail
#   demo      npm, and zstd to compress the recording
#   all       build, npm, python and postgres
#   anvil     print the path of the anvil program, or nothing
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

say() { printf 'quarry: %s\n' "$*" >&2; }
stop() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif have sudo; then
    sudo "$@"
  else
    stop "need root to install packages and there is no sudo; run as root: apt-get install -y $APT_WANTED"
  fi
}

APT_WANTED=
apt_install() {
  APT_WANTED="$*"
  have apt-get || stop "missing: $*; this system has no apt-get, so please install these by its own means and run again"
  say "installing by apt-get: $*"
  # A stale or partly unreachable list is no reason to give up: the install decides.
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 update >&2 ||
    say "apt-get update failed; trying with the package lists that are there"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 \
    install --no-install-recommends "$@" >&2 ||
    stop "apt-get could not install: $*; see its message above"
}

# libclang is loaded at build time by the generator of RocksDB's bindings.
has_libclang() {
  local directory
  for directory in ${LIBCLANG_PATH:+"$LIBCLANG_PATH"} /usr/lib/llvm-*/lib /usr/lib/*-linux-gnu /usr/lib64 /usr/lib /usr/local/lib; do
    compgen -G "$directory/libclang.so*" >/dev/null && return 0
    compgen -G "$directory/libclang-[0-9]*.so*" >/dev/null && return 0
  done
  [ -f "${LIBCLANG_PATH:-/nonexistent}" ] || [ -e /Library/Developer/CommandLineTools/usr/lib/libclang.dylib ]
}

# The generator also reads clang's own headers, which libclang alone does not bring.
has_clang_headers() {
  have clang || compgen -G '/usr/lib/llvm-*/lib/clang/*/include/stddef.h' >/dev/null
}

build_tools() {
  if ! have cargo && [ -x "${CARGO_HOME:-${HOME:-}/.cargo}/bin/cargo" ]; then
    stop "cargo is installed but not on PATH; add ${CARGO_HOME:-${HOME:-}/.cargo}/bin to PATH and run again"
  fi
  have cargo || stop "Rust is missing; install the stable toolchain (1.95 or newer) with rustup and run again"
  local wanted=()
  { have c++ || have g++ || have clang++; } || wanted+=(build-essential)
  { have cc || have gcc || have clang; } || [[ " ${wanted[*]:-} " == *build-essential* ]] || wanted+=(build-essential)
  { has_libclang && has_clang_headers; } || wanted+=(clang libclang-dev)
  if [ "${#wanted[@]}" -gt 0 ]; then apt_install "${wanted[@]}"; fi
}

# The package for this platform is named outright: the one for all platforms puts a script in front of the program,
# which leaves its child running when it is killed.
anvil_path() {
  local found="$PWD/node_modules/.bin/anvil"
  if [ -x "$found" ]; then printf '%s\n' "$found"; fi
}

check_anvil() {
  local anvil="${QUARRY_ANVIL:-$(anvil_path)}"
  [ -n "$anvil" ] || stop "npm left anvil out on this machine ($(uname -sm)); set QUARRY_ANVIL to the path of yours"
  "$anvil" --version >/dev/null || stop "anvil does not start on this machine ($(uname -sm)): $anvil; set QUARRY_ANVIL to the path of yours"
}

npm_packages() {
  local wanted=()
  have node || wanted+=(nodejs)
  have npm || wanted+=(npm)
  if [ "${#wanted[@]}" -gt 0 ]; then apt_install "${wanted[@]}" ca-certificates; fi
  local major
  major="$(node -p 'process.versions.node.split(".")[0]')"
  [ "$major" -ge 18 ] || stop "node $major is too old for the tools; version 18 or newer is needed, which Debian has from 12 and Ubuntu from 24.04 on"
  # npm writes this file last, so it is newer than the lock only after a whole installation.
  local stamp=node_modules/.package-lock.json
  if [ "$stamp" -nt package-lock.json ] && [ "$stamp" -nt package.json ]; then
    check_anvil
    return
  fi
  say "installing the npm packages of tools/package-lock.json"
  # The pinned anvil is the one for Linux on x86-64. Elsewhere it is installed by force and does no harm: the rest is wanted.
  # Its package also asks for a newer node than Debian's, which only npm's own start script would need: a warning.
  local force=()
  [ "$(uname -sm)" = "Linux x86_64" ] || force=(--force)
  local attempt
  for attempt in 1 2; do
    if npm ci --no-audit --no-fund --loglevel=error "${force[@]}" >&2; then
      touch "$stamp"
      check_anvil
      return
    fi
    say "npm ci failed (attempt $attempt of 2)"
    [ "$attempt" -eq 2 ] || sleep 5
  done
  stop "npm could not install the packages of tools/package-lock.json; see its message above"
}

# A client that is tested against; without it the tests of it say that they are skipped.
python_packages() {
  local wanted=../tests/clients/requirements.txt stamp=python/.installed
  if [ -f "$stamp" ] && cmp -s "$stamp" "$wanted"; then return; fi
  have python3 || apt_install python3 python3-venv
  # Debian keeps the parts that make environments in a package of their own.
  python3 -c 'import ensurepip, venv' 2>/dev/null || apt_install python3-venv
  say "installing the Python packages of tests/clients/requirements.txt"
  local attempt
  for attempt in 1 2; do
    if rm -rf python && python3 -m venv python >&2 &&
      python/bin/pip install --quiet --disable-pip-version-check --no-deps -r "$wanted" >&2; then
      cp "$wanted" "$stamp"
      return
    fi
    say "pip failed (attempt $attempt of 2)"
    [ "$attempt" -eq 2 ] || sleep 5
  done
  stop "pip could not install the packages of tests/clients/requirements.txt; see its message above"
}

# A database whose answers are held against ours. The tests start a server of their own from where Debian puts its programs, or from
# QUARRY_POSTGRES; without one they say that they are skipped.
postgres_server() {
  if [ -n "${QUARRY_POSTGRES:-}" ]; then return; fi
  if compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null && have psql; then return; fi
  have apt-get && { [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null; } || {
    say "no PostgreSQL server, and none can be installed without a password: its tests are skipped (apt-get install postgresql)"
    return 0
  }
  # Only its programs are wanted: while this file is there the package makes no database and starts no service.
  local none=/etc/postgresql-common/createcluster.d/quarry-setup.conf
  (
    trap 'as_root rm -f "$none"; as_root rmdir --ignore-fail-on-non-empty "${none%/*}" || true' EXIT
    as_root install -d -m 0755 /etc/postgresql-common "${none%/*}"
    echo 'create_main_cluster = false' | as_root tee "$none" >/dev/null
    apt_install postgresql
  ) || say "PostgreSQL could not be installed: its tests are skipped"
}

case "${1:-}" in
  build) build_tools ;;
  npm) npm_packages ;;
  demo) npm_packages; have zstd || apt_install zstd ;;
  python) python_packages ;;
  postgres) postgres_server ;;
  all) build_tools; npm_packages; python_packages; postgres_server ;;
  anvil) anvil_path ;;
  *) stop "usage: tools/setup.sh build | npm | python | postgres | demo | all | anvil" ;;
esac
