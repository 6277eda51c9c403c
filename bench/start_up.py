#!/usr/bin/env python3
"""How long a start takes: from fork to the first 200 of /health, and the CPU time until then. For each model a first start,
which finds nothing that an earlier one has measured, and later ones.

    bench/start_up.py [STARTS] [MODEL …]          CHASQUI=build/bin/chasqui OUR_ARGS

MODEL: demo, or a file; by default demo and the 24 M and 0.5 B models of `make models`. The files are in the system's cache
after the first start, which does not count.
"""
import http.client
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

import paired

LIMIT_S = 60
POLL_S = 0.0005


def cpu_seconds(pid):
    """Of the threads that it has now."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def is_well(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def start(flags, folder):
    """Milliseconds of wall time and of CPU time until it is ready."""
    port = paired.free_port()
    command = [paired.CHASQUI, "serve", "--port", str(port), "--log-level", "error", *flags, *paired.thread_flags(),
               *shlex.split(os.environ.get("OUR_ARGS", ""))]
    environment = {**os.environ, "CHASQUI_TUNING_CACHE": folder}
    begin = time.monotonic()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    try:
        while not is_well(port):
            if process.poll() is not None or time.monotonic() - begin > LIMIT_S:
                sys.exit(f"a server did not start: {shlex.join(command)}")
            time.sleep(POLL_S)
        return (time.monotonic() - begin) * 1e3, cpu_seconds(process.pid) * 1e3
    finally:
        process.terminate()
        process.wait()


def row(name, starts):
    walls = [wall for wall, _ in starts]
    paired.record("From exec to ready", {
        f"{name}: ms": {"chasqui": statistics.median(walls)},
        f"{name}: CPU time, ms": {"chasqui": statistics.median(cpu for _, cpu in starts)}})
    print(f"{name:<40}{statistics.median(walls):>10.0f}{min(walls):>10.0f}{max(walls):>10.0f}"
          f"{statistics.median(cpu for _, cpu in starts):>10.0f}", flush=True)


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else paired.sized(7, 1)
    names = sys.argv[2:] or ["demo", "random-24m-f16.gguf", "random-0.5b-q4_0.gguf"]
    print(f"ms until ready, {count} starts each, load average {os.getloadavg()[0]:.2f}")
    print(f"{'':<40}{'median':>10}{'least':>10}{'most':>10}{'CPU ms':>10}")
    for name in names:
        path = name if os.path.exists(name) or name == "demo" else os.path.join(paired.ROOT, "build/models", name)
        if name != "demo" and not os.path.exists(path):
            sys.exit(f"{path} is missing: run `make models`")
        flags = [] if name == "demo" else ["-m", path]
        with tempfile.TemporaryDirectory() as folder:
            start(flags, folder)
        first = []
        for _ in range(count):
            with tempfile.TemporaryDirectory() as folder:
                first.append(start(flags, folder))
        with tempfile.TemporaryDirectory() as folder:
            start(flags, folder)
            later = [start(flags, folder) for _ in range(count)]
        row(f"{os.path.basename(name)}, first", first)
        row(f"{os.path.basename(name)}, later", later)


if __name__ == "__main__":
    main()
