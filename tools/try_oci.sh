#!/usr/bin/env bash
# Is the OCI image good? Checks its digests and sizes, unpacks its layer into an empty root and starts there what its
# config says, as its user: without a key it has to refuse, with one it has to answer. tools/try_oci.sh FILE.oci.tar
set -euo pipefail
readonly image=$1
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2> /dev/null || true; rm -rf "$folder"' EXIT
fail() { echo "try_oci: $*" >&2; exit 1; }

mkdir "$folder/layout" "$folder/root"
tar -xf "$image" -C "$folder/layout"
# Follows index → manifest → config and layer, and writes what the container is started with, one word a line.
python3 - "$folder" << 'END'
import gzip, hashlib, json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
layout = folder / "layout"

def blob(descriptor):
    algorithm, digest = descriptor["digest"].split(":")
    content = (layout / "blobs" / algorithm / digest).read_bytes()
    assert algorithm == "sha256" and hashlib.sha256(content).hexdigest() == digest, descriptor
    assert len(content) == descriptor["size"], descriptor
    seen.add(digest)
    return content

seen = set()
assert json.loads((layout / "oci-layout").read_text())["imageLayoutVersion"] == "1.0.0"
index = json.loads((layout / "index.json").read_text())
assert index["schemaVersion"] == 2 and len(index["manifests"]) == 1, index
manifest = json.loads(blob(index["manifests"][0]))
assert manifest["schemaVersion"] == 2 and manifest["mediaType"] == index["manifests"][0]["mediaType"], manifest
config = json.loads(blob(manifest["config"]))
layers = [gzip.decompress(blob(layer)) for layer in manifest["layers"]]
assert ["sha256:" + hashlib.sha256(layer).hexdigest() for layer in layers] == config["rootfs"]["diff_ids"]
assert {file.name for file in (layout / "blobs/sha256").iterdir()} == seen, "blobs that belong to nothing"
platform = index["manifests"][0]["platform"]
assert (config["os"], config["architecture"]) == (platform["os"], platform["architecture"]), platform
assert config["config"]["Labels"]["org.opencontainers.image.version"], config
user = config["config"]["User"]
assert user.split(":")[0] not in ("", "0", "root"), user
(folder / "layer.tar").write_bytes(layers[0])
(folder / "entrypoint").write_text("".join(word + "\n" for word in config["config"]["Entrypoint"]))
(folder / "env").write_text("".join(word + "\n" for word in config["config"]["Env"]))
(folder / "user").write_text(user)
END
owners=()
[ "$(id -u)" = 0 ] && owners=(--same-owner --numeric-owner)
tar -xpf "$folder/layer.tar" "${owners[@]}" -C "$folder/root"
[ -z "$(find "$folder/root" -perm /6000)" ] || fail "files with setuid: $(find "$folder/root" -perm /6000)"
[ -z "$(find "$folder/root" -perm /022 ! -type l ! -path "$folder/root/tmp")" ] || fail "files that others may write"

chmod 755 "$folder"
mapfile -t entrypoint < "$folder/entrypoint"
mapfile -t variables < "$folder/env"
# As root in its own user's name; otherwise in a namespace where this user is root.
enter=("$(command -v chroot)" --userspec="$(cat "$folder/user")" "$folder/root")
[ "$(id -u)" = 0 ] || enter=("$(command -v unshare)" --map-root-user --root="$folder/root")
start=(env -i "${variables[@]}")
code=0
"${start[@]}" "${enter[@]}" "${entrypoint[@]}" --port 0 > "$folder/said" 2>&1 || code=$?
[ "$code" = 2 ] && grep -q -- '--api-key' "$folder/said" || fail "without a key it ended with $code: $(cat "$folder/said")"
"${start[@]}" LLAMA_API_KEY=secret "${enter[@]}" "${entrypoint[@]}" --port 0 > "$folder/said" 2>&1 &
server=$!
for ((i = 0; i < 300; ++i)); do
  grep -q '^serving' "$folder/said" && break
  kill -0 "$server" 2> /dev/null || fail "it does not start: $(cat "$folder/said")"
  sleep 0.1
done
port=$(sed -n 's/^listening on .*:\([0-9]*\).*/\1/p' "$folder/said" | head -n 1)
ask() { curl -sS -m 60 "$@" "http://127.0.0.1:$port/v1/chat/completions" -d '{"max_tokens":8,"messages":[{"role":"user","content":"What is Chasqui?"}]}'; }
ask -H 'Authorization: Bearer secret' | grep -q '"content"' || fail "no answer"
ask | grep -q '"code":401' || fail "it answers without a key"
kill "$server"
wait "$server" || fail "it does not end well"
server=
echo "$image: $(du -h "$image" | cut -f1), digests and sizes hold; started as user $(cat "$folder/user") in an empty root, asked, ended"
