#!/usr/bin/env python3
"""Five models in one node: does everyone get an answer, how soon does a model that is not loaded give one, and what do
the streams of one model notice of another.

    bench/many_models.py [mixed|first|beside] …     all by default; Chasqui alone

mixed    REQUESTS (1000) from CLIENTS (50) to five models (demo, 24 M, 0.5 B, an encoder, a ranking encoder) with memory
         for half of what they need together
first    a model that is not loaded: from the request to its first token, beside what loading it takes
beside   two streams of 24 M, by themselves on all cores, then on half of them while the others are free, or busy with
         something else, then while 0.5 B is loaded, computes and is unloaded, again and again
Settings: those of bench/paired.py.
"""
import concurrent.futures
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import asking
import paired

PARTS = sys.argv[1:] or ["mixed", "first", "beside"]
REQUESTS = int(paired.from_environment("REQUESTS", paired.sized("1000", "20")))
CLIENTS = int(paired.from_environment("CLIENTS", paired.sized("50", "5")))
SECONDS = float(paired.from_environment("SECONDS", paired.sized("30", "2")))
DEMO = os.path.join(paired.ROOT, "models/demo")
FILES = {"demo": f"{DEMO}/chasqui-demo.gguf", "encoder": f"{DEMO}/chasqui-embed.gguf",
         "ranker": f"{DEMO}/chasqui-rerank.gguf", "small": paired.model("random-24m-f16.gguf"),
         "half": paired.model("random-0.5b-q4_0.gguf")}
SHAPE = ["-np", "4", "-c", "4096", "--models-max", "0"]


@contextlib.contextmanager
def node(names, *flags):
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            os.symlink(FILES[name], os.path.join(folder, f"{name}.gguf"))
        with paired.Server("chasqui", None, None, None, "--models-dir", folder, *SHAPE, *flags) as server:
            yield server


def listed(server):
    with urllib.request.urlopen(server.url + "/v1/models", timeout=60) as answer:
        return {model["id"]: model for model in json.load(answer)["data"]}


def becomes(server, name, state):
    while listed(server)[name]["status"]["value"] != state:
        time.sleep(0.01)


def request_of(name, dice):
    if name == "encoder":
        return "/v1/embeddings", {"model": name, "input": asking.words(40, dice.random())}
    if name == "ranker":
        texts = [asking.words(20, dice.random()) for _ in range(4)]
        return "/v1/rerank", {"model": name, "query": texts[0], "documents": texts[1:]}
    messages = [{"role": "user", "content": asking.words(30, dice.random())}]
    return "/v1/chat/completions", {"model": name, "messages": messages, "max_tokens": 16}


def mixed():
    with node(FILES) as server:
        needs = {name: model["memory_bytes"] for name, model in listed(server).items()}
    limit = max(sum(needs.values()) // 2, max(needs.values()))
    print(f"\n{REQUESTS} requests of {CLIENTS} clients to five models, memory for half of them")
    dice = random.Random(1)
    work = [request_of(dice.choice(list(FILES)), dice) for _ in range(REQUESTS)]
    failed, took = [], []

    def send(server, path, body):
        try:
            took.append((body["model"], asking.ask(server, path, body)[1]))
        except OSError as error:
            failed.append((body["model"], str(error)))

    with node(FILES, "--models-memory", str(limit)) as server:
        begun = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
            for path, body in work:
                clients.submit(send, server, path, body)
        asking.told("mixed: seconds", time.monotonic() - begun)
        asking.told("… failed", len(failed), "0")
        asking.told("… models loaded", server.metric("chasqui_model_loads_total"))
        asking.told("… models unloaded", server.metric("chasqui_model_unloads_total"))
        for name in FILES:
            times = [seconds for model, seconds in took if model == name]
            asking.told(f"… {name}: seconds p50", statistics.median(times))
            asking.told(f"… {name}: longest", max(times))
    for name, error in failed[:5]:
        print(f"  {name}: {error}", file=sys.stderr)


def first_token(server, name):
    begun = time.monotonic()
    body = {"model": name, "prompt": "x", "max_tokens": 2, "temperature": 0, "stream": True}
    request = urllib.request.Request(server.url + "/v1/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=paired.RUN_LIMIT_S) as answer:
        for line in answer:
            if line.startswith(b"data: {"):
                return time.monotonic() - begun
    sys.exit(f"{name}: no token")


def first():
    print("\nA model that is not loaded")
    with node(["demo", "half", "small"]) as server:
        first_token(server, "demo")
        for name in ("half", "small"):
            loads, asks = [], []
            for _ in range(paired.ROUNDS):
                for times, act in ((loads, load), (asks, first_token)):
                    times.append(act(server, name))
                    unload(server, name)
            asking.told(f"{name}: seconds to load", statistics.median(loads))
            asking.told("… from the request to the first token", statistics.median(asks), "at most 0.3 s more")


def load(server, name):
    begun = time.monotonic()
    asking.ask(server, "/models/load", {"model": name})
    becomes(server, name, "loaded")
    return time.monotonic() - begun


def follow(server, over, gaps):
    body = {"model": "small", "prompt": "x", "max_tokens": 900, "temperature": 0, "ignore_eos": True, "stream": True}
    while not over.is_set():
        request = urllib.request.Request(server.url + "/v1/completions", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=paired.RUN_LIMIT_S) as answer:
            last = None
            for line in answer:
                if over.is_set():
                    return
                if line.startswith(b"data: {"):
                    now = time.monotonic()
                    if last is not None:
                        gaps.append(1000 * (now - last))
                    last = now


def gaps_of(server, meanwhile):
    gaps, over = [], threading.Event()
    threads = [threading.Thread(target=follow, args=(server, over, gaps)) for _ in range(2)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + SECONDS
    rounds = 0
    while time.monotonic() < end:
        meanwhile(server)
        rounds += 1
    over.set()
    for thread in threads:
        thread.join()
    gaps.sort()
    return {"ITL p50 ms": statistics.median(gaps), "ITL p99 ms": gaps[len(gaps) * 99 // 100], "ITL max ms": gaps[-1],
            "rounds": rounds}


def unload(server, name):
    asking.ask(server, "/models/unload", {"model": name})
    becomes(server, name, "unloaded")


def come_and_go(server):
    load(server, "half")
    asking.complete(server, asking.words(100, 1), 16, model="half")
    unload(server, "half")


@contextlib.contextmanager
def busy(cores):
    """Each of them with a process that goes through memory, as another model's compute threads do."""
    code = "import os\nos.sched_setaffinity(0, {%d})\nmemory = bytes(64 << 20)\nwhile True: bytearray(memory)"
    spinning = [subprocess.Popen([sys.executable, "-c", code % core]) for core in cores]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def beside():
    cores = sorted(os.sched_getaffinity(0))
    half = max(1, len(cores) // 2)
    columns = {}
    for title, flags, others, meanwhile in (("alone", [], [], lambda _: time.sleep(1)),
                                            ("on half", ["-t", str(half)], [], lambda _: time.sleep(1)),
                                            ("others busy", ["-t", str(half)], cores[half:], lambda _: time.sleep(1)),
                                            ("beside", [], [], come_and_go)):
        for _ in range(paired.ROUNDS):
            with node(["small", "half"], *flags) as server, busy(others):
                unload(server, "half")  # the first of the folder is loaded at start
                first_token(server, "small")
                columns.setdefault(title, []).append(gaps_of(server, meanwhile))
    paired.print_table("Two streams of 24 M while 0.5 B comes and goes", columns, list(columns["beside"][0]))
    p99 = {title: statistics.median(each["ITL p99 ms"] for each in rounds) for title, rounds in columns.items()}
    for title in ("on half", "others busy"):
        asking.told(f"ITL p99 beside, over that of {title}", p99["beside"] / p99[title], "at most 1.3")


for part in PARTS:
    {"mixed": mixed, "first": first, "beside": beside}[part]()
