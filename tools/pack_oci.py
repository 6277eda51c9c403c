#!/usr/bin/env python3
"""Packs the portable tarball as an OCI image, without a daemon and without root:

    tools/pack_oci.py build/release/chasqui-VERSION-linux-ARCH.tar.gz OUT_FOLDER

Writes OUT_FOLDER/chasqui-VERSION-linux-ARCH.oci.tar, an image layout with one layer: the tarball's files, the C library
of this machine, which is all that its binary needs, and a user to run as. The same bytes from the same tarball and C
library; times are $SOURCE_DATE_EPOCH, or those in the tarball.
"""
import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import time

USER = 65532  # as other images without a distribution have it
HOME = "home/chasqui"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
INDEX = "application/vnd.oci.image.index.v1+json"


class Layer:
    """Files of a layer, in the order of their names."""

    def __init__(self, epoch):
        self.epoch = epoch
        self.entries = {}

    def add(self, name, content=None, mode=0o644, owner=0, link=None):
        folder = os.path.dirname(name)
        if folder and folder not in self.entries:
            self.add(folder, mode=0o755)
        entry = tarfile.TarInfo(name)
        entry.mode, entry.uid, entry.gid, entry.mtime = mode, owner, owner, self.epoch
        if link is not None:
            entry.type, entry.linkname = tarfile.SYMTYPE, link
        elif content is None:
            entry.type = tarfile.DIRTYPE
        else:
            entry.size = len(content)
        self.entries[name] = (entry, content)

    def bytes(self):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for _, (entry, content) in sorted(self.entries.items()):
                archive.addfile(entry, io.BytesIO(content) if content is not None else None)
        return out.getvalue()


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def c_library(binary):
    """Paths of what the loader needs, as programs look for them: {path in the image: path here}."""
    found = {}
    for line in output_of("ldd", binary).splitlines():
        match = re.match(r"\s*(\S+) => (/\S+)|\s*(/\S+) \(", line)
        if match:
            path = match[2] or match[3]
            found[path.lstrip("/")] = os.path.realpath(path)
    loader = re.search(r"program interpreter: (\S+)\]", output_of("readelf", "-l", binary))[1]
    found[loader.lstrip("/")] = os.path.realpath(loader)
    return found


def read_tarball(path, layer):
    """Its files below /usr/local; the binary."""
    binary = None
    with tarfile.open(path) as archive:
        for member in archive:
            inner = member.name.partition("/")[2]
            if not inner:
                continue
            name = "usr/local/" + inner
            if member.issym():
                layer.add(name, link=member.linkname, mode=member.mode)
            elif member.isdir():
                layer.add(name, mode=0o755)
            elif member.isfile():
                content = archive.extractfile(member).read()
                layer.add(name, content, mode=member.mode & 0o755)
                if inner == "bin/chasqui":
                    binary = content
    if binary is None:
        sys.exit(f"pack_oci: there is no bin/chasqui in {path}")
    return binary


def add_machine(layer, binary_path):
    for name, path in c_library(binary_path).items():
        with open(path, "rb") as file:
            layer.add(name, file.read(), mode=0o755)
    copyright_of_libc = "/usr/share/doc/libc6/copyright"
    if os.path.exists(copyright_of_libc):
        with open(copyright_of_libc, "rb") as file:
            layer.add(copyright_of_libc.lstrip("/"), file.read())
    layer.add("etc/passwd", f"root:x:0:0::/:/nologin\nchasqui:x:{USER}:{USER}::/{HOME}:/nologin\n".encode())
    layer.add("etc/group", f"root:x:0:\nchasqui:x:{USER}:\n".encode())
    layer.add("etc/nsswitch.conf", b"hosts: files dns\n")
    layer.add(HOME, mode=0o700, owner=USER)
    layer.add("models", mode=0o755)
    layer.add("tmp", mode=0o1777)


def config_of(version, architecture, created, diff_id):
    return {
        "created": created,
        "architecture": architecture,
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "ExposedPorts": {"8080/tcp": {}},
            "Env": ["PATH=/usr/local/bin", f"HOME=/{HOME}"],
            "Entrypoint": ["/usr/local/bin/chasqui", "serve", "--host", "0.0.0.0"],
            "WorkingDir": f"/{HOME}",
            "StopSignal": "SIGTERM",
            "Labels": {
                "org.opencontainers.image.title": "chasqui",
                "org.opencontainers.image.description": "Serves GGUF language models to many clients at once",
                "org.opencontainers.image.version": version,
                "org.opencontainers.image.licenses": "MIT",
                "org.opencontainers.image.created": created,
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [diff_id]},
        "history": [{"created": created, "created_by": "tools/pack_oci.py"}],
    }


class Layout:
    """An image layout as a tar: blobs by their digests, and what names them."""

    def __init__(self, epoch):
        self.files = Layer(epoch)

    def blob(self, content, media_type):
        digest = hashlib.sha256(content).hexdigest()
        self.files.add(f"blobs/sha256/{digest}", content)
        return {"mediaType": media_type, "digest": "sha256:" + digest, "size": len(content)}

    def document(self, value, media_type):
        return self.blob(json.dumps(value, separators=(",", ":")).encode(), media_type)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    tarball, out = sys.argv[1:]
    stem = os.path.basename(tarball).removesuffix(".tar.gz")
    _, version, _, machine = re.fullmatch(r"(chasqui)-(.+)-(linux)-(\w+)", stem).groups()
    with tarfile.open(tarball) as archive:
        epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or archive.next().mtime)
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))

    layer = Layer(epoch)
    binary = read_tarball(tarball, layer)
    os.makedirs(out, exist_ok=True)
    binary_path = os.path.join(out, ".chasqui-of-the-image")
    try:
        with open(binary_path, "wb") as file:
            file.write(binary)
        os.chmod(binary_path, 0o755)
        add_machine(layer, binary_path)
    finally:
        os.unlink(binary_path)
    plain = layer.bytes()
    packed = gzip.compress(plain, 9, mtime=0)

    layout = Layout(epoch)
    architecture = ARCHITECTURES.get(machine, machine)
    diff_id = "sha256:" + hashlib.sha256(plain).hexdigest()
    config = layout.document(config_of(version, architecture, created, diff_id), CONFIG)
    manifest = layout.document(
        {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layout.blob(packed, LAYER)]}, MANIFEST)
    manifest["platform"] = {"architecture": architecture, "os": "linux"}
    manifest["annotations"] = {"org.opencontainers.image.ref.name": version, "io.containerd.image.name": f"chasqui:{version}"}
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [manifest]}
    layout.files.add("index.json", json.dumps(index, separators=(",", ":")).encode())
    layout.files.add("oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
    path = os.path.join(out, stem + ".oci.tar")
    with open(path, "wb") as file:
        file.write(layout.files.bytes())
    print(f"{path}: {os.path.getsize(path) / (1 << 20):.1f} MiB, {manifest['digest']}")


if __name__ == "__main__":
    main()
