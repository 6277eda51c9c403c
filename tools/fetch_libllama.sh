#!/usr/bin/env bash
# Puts the pinned llama.cpp source into DEST. The commit is what counts, not the way: it is verified before DEST
# appears, and DEST appears whole or not at all.
set -euo pipefail

readonly version=0.5.0
readonly commit=de3ff815ea7d559ee917f063901b8986f038abc6
# A release of node-llama-cpp carries the complete source of its llama.cpp as a git bundle. Versions on npm never
# change, so the two sums hold. Nothing else of the package is used and no script of it runs.
readonly package=node-llama-cpp@3.22.1
readonly package_sha256=a0d9dd80eacd2ab1cfe71aee57ac8a806487fd70b3d2a38fbec637752d9e5c5f
readonly bundle_member=package/llama/gitRelease.bundle
readonly bundle_sha256=5f5d1105d5df040738d87b8290e5d17e7362131cdcfdb0831618e0ea528b4a51
readonly upstream=https://github.com/ggml-org/llama.cpp

say() { printf 'fetch_libllama: %s\n' "$*" >&2; }

usage() {
  cat >&2 <<USAGE
usage: tools/fetch_libllama.sh DEST

Puts llama.cpp $version (commit $commit) into DEST: from the git bundle named by CHASQUI_LLAMA_BUNDLE when that is
set, else from the npm package $package (36 MB), else from $upstream.
USAGE
  exit 2
}

has_sum() {
  local sum
  if command -v sha256sum > /dev/null; then sum=$(sha256sum "$1"); else sum=$(shasum -a 256 "$1"); fi
  [ "${sum%% *}" = "$2" ] && return
  say "$(basename "$1") does not have the expected SHA-256 sum, so it is not used"
  return 1
}

from_bundle() {
  [ -r "$1" ] || { say "cannot read $1"; return 1; }
  git -c advice.detachedHead=false clone --quiet "$1" "$staging"
}

from_npm() {
  command -v npm > /dev/null || { say "npm is not installed"; return 1; }
  say "downloading the npm package $package (36 MB)"
  local archive
  archive=$(cd "$scratch" &&
    npm pack "$package" --ignore-scripts --loglevel=error < /dev/null) || return 1
  archive=$scratch/$(tail -n 1 <<< "$archive")
  has_sum "$archive" "$package_sha256" || return 1
  tar -xzf "$archive" -C "$scratch" "$bundle_member" || return 1
  has_sum "$scratch/$bundle_member" "$bundle_sha256" || return 1
  from_bundle "$scratch/$bundle_member"
}

from_upstream() {
  say "cloning $upstream at v$version"
  git -c advice.detachedHead=false clone --quiet --depth 1 --branch "v$version" "$upstream" "$staging"
}

# A bundle may leave HEAD elsewhere or nowhere, so the pinned commit is checked out by name.
is_pinned() {
  git -C "$staging" checkout --quiet --detach "$commit" 2> /dev/null || true
  [ "$(git -C "$staging" rev-parse HEAD 2> /dev/null)" = "$commit" ] && return
  say "that source is not commit $commit"
  return 1
}

# Runs one way of getting the source; true when the pinned commit lies in $staging afterwards.
try() {
  rm -rf "$staging"
  "$@" && is_pinned
}

main() {
  case "${1:-}" in '' | -*) usage ;; esac
  local destination=$1
  if [ -e "$destination" ]; then
    if [ "$(git -C "$destination" rev-parse HEAD 2> /dev/null)" = "$commit" ]; then
      say "$destination is there already"
      return
    fi
    say "$destination exists and is something else; remove it first"
    return 1
  fi
  # git must neither ask for a password nor look at hooks and settings of the caller from inside a git command.
  export GIT_TERMINAL_PROMPT=0
  unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
  mkdir -p "$(dirname "$destination")"
  staging=$destination.tmp.$$
  scratch=$(mktemp -d)
  trap 'rm -rf "$staging" "$scratch"' EXIT
  trap 'exit 130' INT TERM HUP

  if [ -n "${CHASQUI_LLAMA_BUNDLE:-}" ]; then
    say "cloning from $CHASQUI_LLAMA_BUNDLE"
    # A caller that names a bundle wants that one: a fault in it must not lead to a silent download.
    try from_bundle "$CHASQUI_LLAMA_BUNDLE" || return 1
  elif ! try from_npm && ! try from_upstream; then
    say "neither the npm package nor $upstream could be had."
    say "Name a git bundle of it with CHASQUI_LLAMA_BUNDLE=FILE, or a checkout with cmake -DCHASQUI_LLAMA_SOURCE=DIR."
    return 1
  fi
  # Another build may have been faster; its result is the same commit, so the loser only tidies up.
  # (-T is GNU's: never move into a folder that is there already.)
  mv -T "$staging" "$destination" 2> /dev/null || [ -e "$destination" ] || mv "$staging" "$destination"
  say "llama.cpp $version is in $destination"
}

main "$@"
