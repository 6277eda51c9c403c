#!/usr/bin/env python3
"""What Chasqui promises under load and no peer has, measured one by one: bench/promises.py [NAME …].

Figures are printed with what is promised beside them; nothing is asserted, since machines differ.
"""

import os
import random
import socket
import statistics
import sys
import tempfile
import time

import paired

SMALL = paired.model("random-24m-f16.gguf")
LARGE = os.path.join(paired.ROOT, "build/models/random-0.5b-q4_0.gguf")


def group(report, name):
    return next(each for each in report["groups"] if each["name"] == name)


def told(what, value, promise):
    print(f"  {what:<58}{paired.shown(value):>10}   {promise}", flush=True)


def median_of(rounds):
    """Medians of the figures of each round: [{name: value}]."""
    return {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}


def key_file():
    file = tempfile.NamedTemporaryFile("w", suffix=".keys")
    file.write("heavy-key name=heavy in_flight=1000\nlight-key name=light in_flight=1000\n")
    file.flush()
    return file


def tenants():
    """Two tenants that offer ten to one."""
    flags = []
    for name, clients in ("heavy", 60), ("light", 6):
        flags += ["--load", f"name={name},clients={clients},duration=20,prompt-words=24,max-tokens=32,key={name}-key"]
    rounds = []
    with key_file() as keys:
        for _ in range(paired.ROUNDS):
            figures = {}
            for policy in "fcfs", "fair":
                shape = (SMALL, 8, 8 * 512, "--api-key-file", keys.name, "--policy", policy)
                report = paired.measure("chasqui", shape, flags + ["--api-key", "heavy-key"])
                heavy, light = (group(report, name)["tokens_per_s"] for name in ("heavy", "light"))
                figures[policy + " tokens/s"] = heavy + light
                figures[policy + " Jain"] = (heavy + light) ** 2 / (2 * (heavy**2 + light**2))
            rounds.append(figures)
    figures = median_of(rounds)
    told("Jain index of their tokens, who came first", figures["fcfs Jain"], "")
    told("Jain index of their tokens, fair", figures["fair Jain"], "≥ 0.95")
    told("tokens/s over those of who came first", figures["fair tokens/s"] / figures["fcfs tokens/s"], "≥ 0.97")


def background():
    """A batch of 100 requests in the background of four people."""
    people = ["--load", "name=people,clients=4,duration=40,prompt-words=24,max-tokens=32,priority=interactive,think=0.3"]
    batch = ["--load", "name=batch,clients=100,requests=100,prompt-words=200,max-tokens=64,priority=background"]
    rounds = []
    for _ in range(paired.ROUNDS):
        figures = {}
        for name, flags in ("alone", people), ("beside", people + batch):
            report = paired.measure("chasqui", (LARGE, 8, 8 * 1024), flags)
            for quantile in "p50", "p99":
                figures[f"{name} {quantile}"] = group(report, "people")["ttft_ms"][quantile]
        rounds.append(figures)
    figures = median_of(rounds)
    for quantile in "p50", "p99":
        told(f"TTFT {quantile} of the four alone, ms", figures[f"alone {quantile}"], "")
        told(f"… beside the batch, over alone", figures[f"beside {quantile}"] / figures[f"alone {quantile}"],
             "≤ 1.2" if quantile == "p99" else "")


def overload():
    """Three times what 64 slots can do, from clients that come again when they are told to."""
    shape = (SMALL, 64, 64 * 256)
    closed = paired.measure("chasqui", shape, ["--load", "clients=64,requests=600,prompt-words=24,max-tokens=32"])
    rate = 3 * closed["total"]["requests_per_s"]
    with paired.Server("chasqui", *shape) as server:
        report = server.bench(["--load", f"rate={rate:.1f},duration=30,prompt-words=24,max-tokens=32,retry=1",
                               "--health-probes", "20"])
        first_token = "chasqui_time_to_first_token_seconds"
        in_time = server.metric(first_token + '_bucket{class="standard",le="5"}') / server.metric(first_token + "_count")
    total = report["total"]
    told("requests offered a second", rate, "three times the sustainable")
    told("answered", total["ok"], "")
    told("refused for good", total["refused"], "")
    told("errors", total["errors"], "0")
    told("first token within 5 s of their admission, share", in_time, "≥ 0.99")
    told("came again when told", total["retried"], "")
    told("… and got in, share", total["retried_ok"] / max(total["retried"], 1), "≥ 0.8")
    told("/health p99, ms", report["health"]["ms"]["p99"], "≤ 10")
    told("threads", report["server"]["threads_most"], "≤ 10")


def holes():
    """Half of 32 streams end early."""
    stay = ["--load", "name=stay,clients=16,requests=16,prompt-words=24,max-tokens=120"]
    leave = ["--load", "name=leave,clients=16,requests=16,prompt-words=24,max-tokens=4-24"]
    rounds = []
    for _ in range(paired.ROUNDS):
        alone = paired.measure("chasqui", (LARGE, 32, 32 * 256), stay)
        holed = paired.measure("chasqui", (LARGE, 32, 32 * 256), stay + leave)
        rounds.append({"alone": group(alone, "stay")["itl_ms"]["p50"], "holed": group(holed, "stay")["itl_ms"]["p50"]})
    figures = median_of(rounds)
    told("ITL p50 of 16 streams alone, ms", figures["alone"], "")
    told("… among 32 of which 16 have left, over alone", figures["holed"] / figures["alone"], "≤ 1.2")


def scarce():
    """A pool with half of the cells that the load needs."""
    with paired.Server("chasqui", SMALL, 16, 1024, "--kv-unified") as server:
        report = server.bench(["--load", "clients=16,requests=200,prompt-words=24,max-tokens=96"])
        told("answered of 200", report["total"]["ok"], "200")
        told("errors", report["total"]["errors"], "0")
        told("preemptions", server.metric("chasqui_preemptions_total"), "> 0")


def ask(url_port, words, tokens):
    prompt = " ".join(random.choice(("sun", "moon", "river", "stone", "relay", "runner")) for _ in range(words))
    body = f'{{"prompt":"{prompt}","max_tokens":{tokens},"stream":true,"ignore_eos":true}}'
    client = socket.create_connection(("127.0.0.1", url_port))
    client.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                   f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
    return client


def leavers():
    """1,000 clients that leave at random points: while they wait, while their prompt is read, while they are answered."""
    random.seed(3)
    with paired.Server("chasqui", SMALL, 16, 16 * 1024, "--cache-ram", "0") as server:  # what is kept would grow
        before = resident_bytes(server.process.pid)
        running = []
        for number in range(1000):
            client = ask(server.port, random.choice((10, 100, 600)), 200)
            running.append((time.monotonic() + random.random() ** 2 * 1.5, client))
            time.sleep(random.random() * 0.02)
            now = time.monotonic()
            for _, left in [each for each in running if each[0] <= now]:
                left.close()
            running = [each for each in running if each[0] > now]
            if number == 499:
                before = max(before, resident_bytes(server.process.pid))
        for _, client in running:
            client.close()
        end = time.monotonic() + 20
        while server.metric("chasqui_requests_running") + server.metric("chasqui_requests_waiting") > 0 and time.monotonic() < end:
            time.sleep(0.05)
        told("slots used afterwards", server.metric("chasqui_kv_slots_used"), "0")
        told("cells used afterwards", server.metric("chasqui_kv_cells_used"), "0")
        told("ended because the client left", server.metric('chasqui_requests_finished_total{reason="cancelled"}'), "")
        cancels = server.metric("chasqui_cancel_steps_count")
        told("freed within one step of the kill, share",
             server.metric('chasqui_cancel_steps_bucket{le="1"}') / max(cancels, 1), "≥ 0.99")
        told("memory, second half over first", resident_bytes(server.process.pid) / before, "≤ 1.05")


def resident_bytes(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


PROMISES = {each.__name__: each for each in (tenants, background, overload, holes, scarce, leavers)}

if __name__ == "__main__":
    for wanted in sys.argv[1:] or PROMISES:
        if wanted not in PROMISES:
            sys.exit(f"{wanted}: no such promise; there are {', '.join(PROMISES)}")
        print(f"{wanted}: {PROMISES[wanted].__doc__}", flush=True)
        PROMISES[wanted]()
