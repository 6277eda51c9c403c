#!/usr/bin/env bash
# Is the portable tarball good? Unpacks it into a root that has the C library and nothing else, asks there for a first
# answer, serves there, and looks at what is in it: tools/try_tarball.sh FILE.tar.gz [any]
# any: its binary has variants of ggml's CPU backend.
set -euo pipefail
readonly tarball=$1 cpu=${2:-}
readonly size_max=$((40 * 1024 * 1024))
root=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2> /dev/null || true; rm -rf "$root"' EXIT
fail() { echo "try_tarball: $*" >&2; exit 1; }

began=$(date +%s%N)
[ "$(stat -c %s "$tarball")" -le "$size_max" ] || fail "it has more than $size_max bytes"
[ "$(tar -tzf "$tarball" | cut -d/ -f1 | sort -u)" = "$(basename "$tarball" .tar.gz)" ] || fail "it has more than its folder"
mkdir -p "$root/usr/local"
tar -xzf "$tarball" -C "$root/usr/local" --strip-components=1
readonly binary=$root/usr/local/bin/chasqui
for file in bin/chasqui INSTALL.md LICENSE etc/chasqui/chasqui.toml lib/systemd/system/chasqui.service lib/sysusers.d/chasqui.conf \
  share/doc/chasqui/copyright share/doc/chasqui/chasqui.spdx.json share/man/man1/chasqui.1.gz \
  share/man/man1/chasqui-serve.1.gz share/bash-completion/completions/chasqui; do
  [ -s "$root/usr/local/$file" ] || fail "$file is not in it"
done
[ -z "$(find "$root/usr" -perm /022 ! -type l)" ] || fail "files that others may write: $(find "$root/usr" -perm /022)"
grep -q '^ExecStart=/usr/local/bin/chasqui ' "$root/usr/local/lib/systemd/system/chasqui.service" || fail "its unit starts another binary"
# What the C library's loader needs.
needed=$(readelf -d "$binary" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p')
for library in $needed; do
  case $library in
    libc.so.6 | libm.so.6 | ld-linux-*.so.* | libdl.so.2 | libpthread.so.0) ;;
    *) fail "its binary needs $library" ;;
  esac
  path=$(ldd "$binary" | awk -v name="$library" 'index($1, name) { print ($2 == "=>") ? $3 : $1 }')
  [ -n "$path" ] || fail "this machine has no $library"
  install -D "$path" "$root$path"
done
interpreter=$(readelf -l "$binary" | sed -n 's/.*program interpreter: \(.*\)\]/\1/p')
[ -e "$root$interpreter" ] || install -D "$interpreter" "$root$interpreter"

# As root, or in a namespace where this user is root.
enter=(chroot "$root")
[ "$(id -u)" = 0 ] || enter=(unshare --map-root-user --root="$root")
"${enter[@]}" /usr/local/bin/chasqui --version | grep -qxF "chasqui $(basename "$tarball" | cut -d- -f2)" || fail "its name has another version"
"${enter[@]}" /usr/local/bin/chasqui chat --temp 0 --no-history "What is Chasqui?" | grep Chasqui > "$root/answer" || fail "no answer"
first=$((($(date +%s%N) - began) / 1000000))
# Each variant of ggml's CPU backend that this processor runs, where the binary has several.
variants=$({ CHASQUI_CPU_VARIANT=- "${enter[@]}" /usr/local/bin/chasqui --version 2>&1 || true; } |
  sed -n 's/.*allowed here are //p')
[ "$cpu" != any ] || [ -n "$variants" ] || fail "its binary has one variant of ggml's CPU backend"
for variant in $variants; do
  CHASQUI_CPU_VARIANT=$variant "${enter[@]}" /usr/local/bin/chasqui chat --temp 0 --no-history "What is Chasqui?" |
    grep -q Chasqui || fail "no answer with the variant $variant"
done
"${enter[@]}" /usr/local/bin/chasqui licenses | cmp -s - "$root/usr/local/share/doc/chasqui/copyright" || fail "its copyright file is of another build"
"${enter[@]}" /usr/local/bin/chasqui serve --port 0 > "$root/said" 2>&1 &
server=$!
for ((i = 0; i < 300; ++i)); do
  grep -q '^serving' "$root/said" && break
  kill -0 "$server" 2> /dev/null || fail "it does not start: $(cat "$root/said")"
  sleep 0.1
done
url=$(sed -n 's/^listening on //p' "$root/said")
curl -sSf -m 60 "$url/v1/chat/completions" -d '{"max_tokens":8,"messages":[{"role":"user","content":"What is Chasqui?"}]}' |
  grep -q '"content"' || fail "no answer of the server"

# The commands of INSTALL.md once more, while that server runs.
mkdir "$root/new"
tar -xzf "$tarball" -C "$root/new" --strip-components=1
echo '# mine' > "$root/usr/local/etc/chasqui/chasqui.toml"
echo 'old' > "$root/usr/local/share/doc/chasqui/copyright"
upgrade=$(sed -n 's|^ *sudo \(cp .*\) /usr/local/$|\1 ../usr/local/|p' "$root/new/INSTALL.md")
[ -n "$upgrade" ] || fail "INSTALL.md does not say how to install it"
(cd "$root/new" && eval "$upgrade") || fail "it cannot be upgraded while it runs"
[ "$(cat "$root/usr/local/etc/chasqui/chasqui.toml")" = '# mine' ] || fail "an upgrade overwrites the settings"
cmp -s "$root/new/share/doc/chasqui/copyright" "$root/usr/local/share/doc/chasqui/copyright" || fail "an upgrade leaves old files"
kill "$server"
wait "$server" || fail "it does not end well"
server=
echo "$tarball: $(du -h "$tarball" | cut -f1), first answer $first ms after it began to be unpacked, in a root with" $needed \
  "${variants:+; CPU variants that ran: $variants}"
