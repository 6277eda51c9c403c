#!/usr/bin/env bash
# Packs a build for other machines: tools/pack_tarball.sh BUILD_FOLDER OUT_FOLDER
# The tarball has a folder bin, etc, lib and share, as below /usr/local. Its binary needs the C library and nothing else.
set -euo pipefail
readonly build=$1 out=$2
readonly source=$(cd "$(dirname "$0")/.." && pwd)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

# The same bytes from the same sources.
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
  SOURCE_DATE_EPOCH=$(git -C "$source" log -1 --format=%ct 2> /dev/null || stat -c %Y "$source/CHANGELOG.md")
  export SOURCE_DATE_EPOCH
fi
umask 022
DESTDIR=$stage cmake --install "$build" --prefix /usr/local > /dev/null
readonly binary=$build/self_contained/chasqui
version=$("$binary" --version | cut -d' ' -f2)
readonly name=chasqui-$version-linux-$(uname -m)
mv "$stage/usr/local" "$stage/$name"
install -m 755 "$binary" "$stage/$name/bin/chasqui"
strip "$stage/$name/bin/chasqui"
cp "$source/deploy/tarball/INSTALL.md" "$source/LICENSE" "$stage/$name/"
mkdir -p "$out"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$stage" -c "$name" |
  gzip -9n > "$out/$name.tar.gz"
echo "$out/$name.tar.gz: $(du -h "$out/$name.tar.gz" | cut -f1)"
