#!/usr/bin/env python3
"""Tenants that share eight slots: what one that wants little notices of one that wants all, and what each gets.

    bench/two_tenants.py [interactive|shares] …   both by default; Chasqui alone

interactive: short interactive requests of tenant B by itself, then beside STREAMS (100) streams of tenant A that never
end, and A's rate without and with B; the texts of A's streams are compared with those of a server that has nothing else
to do. shares: tenants of equal weight with 1, 10 and 100 clients, Jain's index of their tokens in windows of ten seconds, each
over its max-min share: a tenant with one client cannot use more than one slot, and the others share what it leaves.
ENGINE: sim (a simulated model, by default), or the demo model (demo). SECONDS: of each measurement (20).
"""
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import paired

PARTS = sys.argv[1:] or ["interactive", "shares"]
STREAMS = int(paired.from_environment("STREAMS", "100"))
ENGINE = paired.from_environment("ENGINE", "sim")
SECONDS = float(paired.from_environment("SECONDS", paired.sized("20", "3")))
WINDOW_S = 10
SLOTS = 8


class Node:
    def __init__(self, tenants):
        self.keys = tempfile.NamedTemporaryFile("w", suffix=".keys")
        self.keys.write("".join(f"key-{name} name={name} in_flight=256\n" for name in tenants))
        self.keys.flush()
        self.port = paired.free_port()
        engine = ["--engine", "sim"] if ENGINE == "sim" else []
        self.process = subprocess.Popen(
            [paired.CHASQUI, "serve", *engine, "-np", str(SLOTS), "-c", str(SLOTS * 2048), "--port", str(self.port),
             "--api-key-file", self.keys.name, *paired.thread_flags()], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        while b"listening" not in self.process.stdout.readline():
            assert self.process.poll() is None, "the server did not start"

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.terminate()
        self.process.wait()


class Answer:
    """When its tokens came, and what they said."""

    def __init__(self):
        self.sent = time.monotonic()
        self.times = []
        self.text = ""
        self.finished = False


async def stream(node, tenant, prompt, tokens, answer, **fields):
    reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
    body = json.dumps({"prompt": prompt, "n_predict": tokens, "stream": True, "temperature": 0, "ignore_eos": True,
                       **fields}).encode()
    writer.write(f"POST /completion HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer key-{tenant}\r\nConnection: close\r\n"
                 f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    try:
        async for line in reader:
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            if event.get("content"):
                answer.times.append(time.monotonic())
                answer.text += event["content"]
            answer.finished = answer.finished or event.get("stop", False)
    finally:
        writer.close()
    return answer


async def again_and_again(node, tenant, number, tokens, answers):
    while True:
        answer = Answer()
        answers.append(answer)
        await stream(node, tenant, f"Tell me story {number}", tokens, answer)


async def short_ones(node, tenant, seconds):
    """Seconds to the first token of short interactive requests, one after the other."""
    firsts = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        answer = await stream(node, tenant, "What is it?", 8, Answer(), priority="interactive")
        firsts.append(answer.times[0] - answer.sent)
        await asyncio.sleep(0.05)
    return firsts


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def rate(answers, begin, end):
    return sum(begin <= at < end for answer in answers for at in answer.times) / (end - begin)


async def stop(tasks):
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def interactive():
    with Node(["a", "b"]) as node:
        alone = await short_ones(node, "b", SECONDS / 4)
        references = {}
        for number in range(0, STREAMS, max(1, STREAMS // 10)):
            references[number] = (await stream(node, "a", f"Tell me story {number}", 400, Answer())).text
        answers = [[] for _ in range(STREAMS)]
        tasks = [asyncio.create_task(again_and_again(node, "a", i, 400, answers[i])) for i in range(STREAMS)]
        await asyncio.sleep(SECONDS / 4)
        begin = time.monotonic()
        await asyncio.sleep(SECONDS)
        middle = time.monotonic()
        beside = await short_ones(node, "b", SECONDS)
        end = time.monotonic()
        await stop(tasks)
        every = [answer for of_one in answers for answer in of_one]
        whole = [(number, answer) for number in references for answer in answers[number] if answer.finished]
        without, together = rate(every, begin, middle), rate(every, middle, end) + 8 * len(beside) / (end - middle)
        wrong = sum(answer.text != references[number] for number, answer in whole)
        print(f"B alone: first token p50 {1000 * statistics.median(alone):.1f} ms, p99 {1000 * quantile(alone, 0.99):.1f} ms")
        print(f"B beside {STREAMS} streams of A: p50 {1000 * statistics.median(beside):.1f} ms, "
              f"p99 {1000 * quantile(beside, 0.99):.1f} ms, longest {1000 * max(beside):.1f} ms, {len(beside)} requests")
        print(f"tokens/s without B {without:.0f}, with B {together:.0f}: {together / without:.3f}")
        print(f"A's texts compared {len(whole)}, other than alone {wrong}; streams that finished "
              f"{sum(any(a.finished for a in of_one) for of_one in answers)} of {STREAMS}")


def max_min(demands, slots):
    """Slots of each tenant: equal parts, of which none is more than its clients can use."""
    out = {}
    for name in sorted(demands, key=demands.get):
        out[name] = min(demands[name], (slots - sum(out.values())) / (len(demands) - len(out)))
    return out


def jain(values):
    return sum(values) ** 2 / (len(values) * sum(value ** 2 for value in values))


async def shares():
    clients = {"one": 1, "ten": 10, "hundred": 100}
    with Node(clients) as node:
        answers = {name: [] for name in clients}
        tasks = [asyncio.create_task(again_and_again(node, name, i, 1000, answers[name]))
                 for name, count in clients.items() for i in range(count)]
        await asyncio.sleep(SECONDS / 2)
        begin = time.monotonic()
        await asyncio.sleep(max(SECONDS, 3 * WINDOW_S))
        end = time.monotonic()
        await stop(tasks)
        indices = []
        at = begin
        while at + WINDOW_S <= end:
            rates = [rate(answers[name], at, at + WINDOW_S) for name in clients]
            fair = max_min(clients, SLOTS)
            indices.append(jain([value / fair[name] for name, value in zip(clients, rates)]))
            print(f"tokens/s {', '.join(f'{name} {value:.0f}' for name, value in zip(clients, rates))}: "
                  f"Jain {indices[-1]:.3f} (of the rates themselves {jain(rates):.3f})")
            at += WINDOW_S
        print(f"Jain's index, least of the windows: {min(indices):.3f}")


os.environ.setdefault("PYTHONUNBUFFERED", "1")
for part in PARTS:
    print(f"{part}, {ENGINE}, {SLOTS} slots", flush=True)
    asyncio.run({"interactive": interactive, "shares": shares}[part]())
