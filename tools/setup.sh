#!/usr/bin/env bash
# Installs what the build needs and this machine lacks. Says nothing when nothing is missing, so that every
# `make run` can call it.
set -euo pipefail

# Never libboost-dev: on Debian 12 it is Boost 1.74, whose headers are in the way of 1.81's.
readonly build_packages=(
  make gzip g++ cmake ninja-build ccache pkg-config git ca-certificates curl python3-minimal
  libboost1.81-dev libboost-json1.81-dev node-llhttp libcli11-dev libedit-dev libtomlplusplus-dev libssl-dev libxxhash-dev zlib1g-dev
  libcurl4-openssl-dev libhiredis-dev libnats-dev
  libgtest-dev libbenchmark-dev
  libzmq5  # of --kv-events, for its tests
)
readonly check_packages=(clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev python3 jq tmux openssl)
readonly browser_packages=(chromium fonts-dejavu-core)
readonly fleet_packages=(haproxy nginx libnginx-mod-http-dav-ext redis-server nats-server)

say() { printf 'setup: %s\n' "$*" >&2; }

usage() {
  cat >&2 <<'USAGE'
usage: tools/setup.sh [--checks | --browser | --fleet]

Installs the Debian 12 packages that the build needs, as root or through sudo.
--checks adds what `make lint` and `make fmt` need, --browser what `make page-test` needs, --fleet what `make fleet-test`
needs.
USAGE
  exit 2
}

is_debian_12() {
  [ -r /etc/os-release ] || return 1
  # shellcheck disable=SC1091
  (. /etc/os-release && [ "${ID:-}" = debian ] && [ "${VERSION_ID:-}" = 12 ])
}

# Prints those of the named packages that are not installed. One query for all of them keeps this instant.
missing() {
  local installed name
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2> /dev/null || true)
  for name; do
    grep -qxF "installed $name" <<< "$installed" || printf '%s\n' "$name"
  done
}

explain_elsewhere() {
  # A build folder that is configured proves that everything was found.
  [ ! -e "$(dirname "$0")/../build/build.ninja" ] || return 0
  say "this is not Debian 12, so nothing is installed for you. The build needs:"
  cat >&2 <<'LIST'
  a C++20 compiler (g++ 12 or clang 14, or newer), CMake 3.25, Ninja, git, Python 3, Node.js 20 with npm
  Boost 1.81 or newer (headers and Boost.JSON), CLI11 2, OpenSSL 3, libcurl 7.85, hiredis, nats.c 3.4, xxHash 0.8, GoogleTest
  llhttp 8 in C source (Debian's node-llhttp: /usr/share/llhttp and /usr/share/include/llhttp)
  optional: ccache; clang-format 14, clang-tidy 14 and jq for `make fmt` and `make lint`; Chromium for `make page-test`
LIST
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo > /dev/null; then
    sudo "$@"
  else
    say "not root, and there is no sudo. As root:"
    say "  apt-get update && apt-get install --no-install-recommends ${lacking[*]}"
    exit 1
  fi
}

main() {
  local packages=("${build_packages[@]}")
  case "${1:-}" in
    '') ;;
    --checks) packages+=("${check_packages[@]}") ;;
    --browser) packages+=("${browser_packages[@]}") ;;
    --fleet) packages+=("${fleet_packages[@]}") ;;
    *) usage ;;
  esac
  if ! is_debian_12; then
    explain_elsewhere
    return
  fi
  mapfile -t lacking < <(missing "${packages[@]}")
  if [ ${#lacking[@]} -gt 0 ]; then
    if [ -z "$(missing libboost1.74-dev)" ]; then
      say "libboost1.74-dev is installed. It and libboost1.81-dev own the same files, so only one can be there."
      say "If nothing else needs it: apt-get remove libboost1.74-dev, then run this again."
      return 1
    fi
    say "installing ${lacking[*]}"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${lacking[@]}" < /dev/null
  fi
  command -v npm > /dev/null || say "npm is missing: libllama comes from GitHub then, and 'make e2e' cannot run"
}

main "$@"
