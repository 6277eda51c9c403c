#!/usr/bin/env bash
# Prints a folder with `prometheus` and `promtool`, for the tests of the dashboard and the alerts. Where they are not
# installed, Debian's package is unpacked into build/prometheus: installing it would start a service.
set -euo pipefail

if command -v promtool > /dev/null && command -v prometheus > /dev/null; then
  dirname "$(command -v promtool)"
  exit
fi
folder=$(cd "$(dirname "$0")/.." && pwd)/build/prometheus
if [ ! -x "$folder/usr/bin/promtool" ]; then
  mkdir -p "$folder"
  cd "$folder"
  if ! apt-get download -q prometheus > download.log 2>&1; then
    apt-get update -q >> download.log 2>&1 || true
    apt-get download -q prometheus >> download.log 2>&1 || { cat download.log >&2; exit 1; }
  fi
  dpkg -x prometheus_*.deb .
  rm -f prometheus_*.deb
fi
echo "$folder/usr/bin"
