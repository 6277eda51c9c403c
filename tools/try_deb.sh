#!/usr/bin/env bash
# Is the Debian package good? Unpacks it into a folder, looks at what is in it, and serves from there:
# tools/try_deb.sh FILE.deb
set -euo pipefail
readonly package=$1
root=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2> /dev/null || true; rm -rf "$root"' EXIT
fail() { echo "try_deb: $*" >&2; exit 1; }

dpkg-deb -x "$package" "$root"
for file in usr/bin/chasqui lib/systemd/system/chasqui.service lib/systemd/system/chasqui.socket \
  lib/sysusers.d/chasqui.conf etc/chasqui/chasqui.toml \
  usr/share/doc/chasqui/copyright usr/share/doc/chasqui/chasqui.spdx.json usr/share/man/man1/chasqui-serve.1.gz \
  usr/share/bash-completion/completions/chasqui; do
  # lib may be usr/lib, where the package was made for a merged /usr.
  [ -f "$root/$file" ] || [ -f "$root/usr/$file" ] || fail "$file is not in it"
done
[ -z "$(find "$root" -type f -perm /022)" ] || fail "files that others may write: $(find "$root" -type f -perm /022)"
dpkg-deb -f "$package" Depends | grep -q libssl3 || fail "its dependencies lack libssl3"
dpkg-deb -f "$package" Recommends | grep -q libcurl4 || fail "what it recommends lacks libcurl4, for chasqui pull"
dpkg-deb --ctrl-tarfile "$package" | tar -xO ./conffiles | grep -qx /etc/chasqui/chasqui.toml || fail "settings are no conffile"
for script in postinst prerm; do dpkg-deb --ctrl-tarfile "$package" | tar -xO "./$script" | sh -n; done
env -i "$root/usr/bin/chasqui" licenses | cmp -s - "$root/usr/share/doc/chasqui/copyright" || fail "its copyright file is of another build"
grep -q '^ExecStart=/usr/bin/chasqui ' "$root"/*/systemd/system/chasqui.service "$root"/usr/*/systemd/system/chasqui.service 2> /dev/null ||
  fail "its unit starts another binary"
env -i HOME="$root" "$root/usr/bin/chasqui" config --config "$root/etc/chasqui/chasqui.toml" > /dev/null
env -i HOME="$root" "$root/usr/bin/chasqui" serve --config "$root/etc/chasqui/chasqui.toml" --port 0 > "$root/said" 2>&1 &
server=$!
for ((i = 0; i < 300; ++i)); do
  grep -q '^serving' "$root/said" && break
  kill -0 "$server" 2> /dev/null || fail "it does not start: $(cat "$root/said")"
  sleep 0.1
done
url=$(sed -n 's/^listening on //p' "$root/said")
curl -sSf -m 60 "$url/v1/chat/completions" -d '{"max_tokens":8,"messages":[{"role":"user","content":"What is Chasqui?"}]}' |
  grep -q '"content"' || fail "no answer"
kill "$server"
wait "$server" || fail "it does not end well"
server=
echo "$package: $(du -h "$package" | cut -f1), unpacked, started, asked, ended; $(dpkg-deb -f "$package" Depends)"
