#!/usr/bin/env python3
"""The promises that are figures, measured with the built-in model and held against what docs/promises.md says:
bench/promise_figures.py [NAME …]. Exit status 1 when one is broken. Needs a machine that has nothing else to do.
"""
import os
import subprocess
import sys
import tempfile
import time
import urllib.request

import paired

DEMO = os.path.join(paired.ROOT, "models/demo/chasqui-demo.gguf")
broken = []


def held(what, value, promise, kept):
    print(f"  {what:<66}{paired.shown(value):>10}   {promise}{'' if kept else '   BROKEN'}", flush=True)
    if not kept:
        broken.append(what)


def at_most(what, value, most):
    held(what, value, f"≤ {most}", value <= most)


def at_least(what, value, least):
    held(what, value, f"≥ {least}", value >= least)


def group(report, name):
    return next(each for each in report["groups"] if each["name"] == name)


def on_time():
    """Streams of four people while prompts of 1,500 words are read, again and again."""
    people = "name=people,clients=4,duration=15,prompt-words=24,max-tokens=64,priority=interactive"
    readers = "name=readers,clients=2,duration=15,prompt-words=1500,max-tokens=4"
    with paired.Server("chasqui", DEMO, 8, 8 * 8192, "--cache-ram", "0") as server:
        report = server.bench(["--load", people, "--load", readers, "--health-probes", "20"])
        slowest = server.metric("chasqui_loop_stalls_total")
    figures = group(report, "people")
    # Twice the target of interactive streams: a step may take 1.6 times as long, and machines have neighbours.
    at_most("time between two tokens of a stream, p99, ms", figures["itl_ms"]["p99"], 200)
    at_most("time to a stream's first token, p95, ms", figures["ttft_ms"]["p95"], 500)
    at_least("prompts read meanwhile", group(report, "readers")["ok"], 10)
    held("turns of the loop over 5 ms", slowest, "(shown)", True)


def health():
    """/health under full load, asked twenty times a second."""
    with paired.Server("chasqui", DEMO, 8, 8 * 1024) as server:
        load = "clients=64,duration=15,prompt-words=100,max-tokens=64"
        report = server.bench(["--load", load, "--health-probes", "20"])
    at_most("/health, p99, ms", report["health"]["ms"]["p99"], 10)
    at_most("errors", report["total"]["errors"], 0)


def overload():
    """500 clients on 64 slots that never try again, then 80 on 4 slots with a line of 20 that do."""
    with paired.Server("chasqui", DEMO, 64, 64 * 512) as server:
        load = "clients=500,requests=1000,prompt-words=24,max-tokens=16"
        report = server.bench(["--load", load, "--health-probes", "20", "--timeout", "600"])
        answered = report["total"]["ok"]
        held("answered, of 1000 whose clients never try again", answered, "1000", answered == 1000)
        held("/health meanwhile, p99, ms", report["health"]["ms"]["p99"], "(shown)", True)
    with paired.Server("chasqui", DEMO, 4, 4 * 1024, "--queue-requests", "20") as server:
        report = server.bench(["--load", "clients=80,requests=400,prompt-words=24,max-tokens=64,retry=1"])
        total = report["total"]
        held("neither answered nor refused, of 400 for a line of 20", total["errors"], "0", total["errors"] == 0)
        at_least("came back when they were told", total["retried"], 1)
        at_least("answered", total["ok"], 1)
        left = sum(server.metric(f"chasqui_{name}") for name in ("requests_running", "requests_waiting", "kv_cells_used"))
        held("requests and cells that are left over", left, "0", left == 0)


def small():
    """One file, one command, and nothing else: the built-in model from the start to its first answer."""
    with tempfile.TemporaryDirectory() as empty:
        port = paired.free_port()
        begun = time.monotonic()
        server = subprocess.Popen([paired.CHASQUI, "serve", "--port", str(port)], cwd=empty, env={"HOME": empty},
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            body = b'{"max_tokens":8,"messages":[{"role":"user","content":"What is Chasqui?"}]}'
            answered = None
            while answered is None and time.monotonic() - begun < 60:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/chat/completions", body) as answer:
                        answered = answer.read()
                except OSError:
                    time.sleep(0.02)
            at_most("from the start to the first whole answer, s", time.monotonic() - begun, 10)
            with open(f"/proc/{server.pid}/status", encoding="ascii") as file:
                status = dict(line.split(":", 1) for line in file)
            at_most("resident memory, MiB", int(status["VmRSS"].split()[0]) / 1024, 256)
            at_most("threads", int(status["Threads"]), 16)
            held("files written", len(os.listdir(empty)), "0", not os.listdir(empty))
        finally:
            server.kill()
            server.wait()


CHECKS = {each.__name__: each for each in (on_time, health, overload, small)}

if __name__ == "__main__":
    for wanted in sys.argv[1:] or CHECKS:
        if wanted not in CHECKS:
            sys.exit(f"{wanted}: no such figures; there are {', '.join(CHECKS)}")
        print(f"{wanted}: {CHECKS[wanted].__doc__}", flush=True)
        CHECKS[wanted]()
    sys.exit(1 if broken else 0)
