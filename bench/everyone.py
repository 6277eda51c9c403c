#!/usr/bin/env python3
"""Ordinary loads with the flags that users set, none of whose clients tries again: is everyone answered, and when?

    bench/everyone.py [PART …]          all of them by default

crowd32   32 clients on 32 slots, 64 requests of 48 tokens
six       6 clients with prompts of 600 words on 8 slots
four      4 clients on 16 slots with prompts of 600 to 1,500 words, for a minute
alone     one prompt of 3,000 words, no flags
long      one prompt of 5,000 words, no flags
classes   32 streams of one class, and of all three (Chasqui alone)
seven     7 B parameters, one thread: a prompt of 160 words alone, then beside a stream, also with -b 2048

BUSY: so many processes that only use processor time run meanwhile (0). LIMIT: seconds until a client gives up, which
counts as an error (1200). MODEL, ROUNDS and the like: bench/paired.py.
"""
import contextlib
import os
import signal
import subprocess
import sys

import paired

BUSY = int(paired.from_environment("BUSY", "0"))
LIMIT = paired.from_environment("LIMIT", "1200")
HALF_B = "random-0.5b-q4_0.gguf"
TOTAL = {
    "ok": ("total", "ok"),
    "refused": ("total", "refused"),
    "errors": ("total", "errors"),
    "all done s": ("total", "wall_s"),
    "requests/s": ("total", "requests_per_s"),
    "tokens/s": ("total", "tokens_per_s"),
    "TTFT p50 ms": ("total", "ttft_ms", "p50"),
    "TTFT max ms": ("total", "ttft_ms", "max"),
    "ITL p50 ms": ("total", "itl_ms", "p50"),
    "ITL max ms": ("total", "itl_ms", "max"),
    "server CPU s": ("server", "cpu_s"),
}


@contextlib.contextmanager
def busy_processes(count):
    here = f"while [ -d /proc/{os.getpid()} ]; do i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; done"
    processes = [subprocess.Popen(["sh", "-c", here]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.send_signal(signal.SIGKILL)
            process.wait()


def total(title, shape, load, *flags):
    beside = f", {BUSY} busy processes" if BUSY else ""
    with busy_processes(BUSY):
        paired.compare(title + beside, shape, ["--load", load, "--timeout", LIMIT, *flags], TOTAL)


def crowd32():
    clients, requests, tokens = paired.sized((32, 64, 48), (4, 8, 4))
    total(f"{clients} clients on {clients} slots, {requests} requests of {tokens} tokens",
          (paired.model(HALF_B), clients, clients * 256),
          f"clients={clients},requests={requests},prompt-words=24,max-tokens={tokens}")


def six():
    words = paired.sized(600, 40)
    total(f"6 clients with prompts of {words} words on 8 slots", (paired.model(HALF_B), 8, 8 * 2048),
          f"clients=6,requests=6,prompt-words={words},max-tokens=32")


def four():
    seconds, words = paired.sized((60, "600-1500"), (2, "20-40"))
    total(f"4 clients on 16 slots with prompts of {words} words, {seconds} s", (paired.model(HALF_B), 16, 16 * 2048),
          f"clients=4,duration={seconds},prompt-words={words},max-tokens=32")


def alone(words=paired.sized(3000, 50)):
    total(f"one prompt of {words:,} words, no flags", (paired.model(HALF_B),),
          f"clients=1,requests=1,prompt-words={words},max-tokens=8")


def classes():
    shape = (paired.model(HALF_B), 32, 32 * 256)
    load = "requests={0},clients={0},prompt-words=24,max-tokens=64,priority={1},name={1}"
    columns = {"interactive alone": [], "three classes": []}
    for _ in range(paired.ROUNDS):
        for name, groups in (("interactive alone", {"interactive": 32}),
                             ("three classes", {"interactive": 11, "standard": 11, "background": 10})):
            flags = [word for each, count in groups.items() for word in ("--load", load.format(count, each))]
            report = paired.measure("chasqui", shape, flags)
            columns[name].append({"tokens/s": paired.at(report, ("total", "tokens_per_s")),
                                  "interactive ITL p50 ms": paired.at(report, ("interactive", "itl_ms", "p50")),
                                  "interactive ITL p99 ms": paired.at(report, ("interactive", "itl_ms", "p99"))})
    paired.print_table("32 streams of one class, and of three", columns, list(columns["three classes"][0]))


def seven():
    shape = (paired.model(paired.sized("random-7b-q4_0.gguf", HALF_B)),)
    prompt = "name=prompt,clients=1,requests=1,prompt-words=160,max-tokens=2"
    figures = {"ok": ("total", "ok"), "prompt TTFT ms": ("prompt", "ttft_ms", "p50")}
    paired.compare("7 B, one thread: a prompt of 160 words", (*shape, None, None, "-t", "1"),
                   ["--load", prompt, "--timeout", "600"], figures)
    stream = "name=stream,clients=1,requests=1,prompt-words=8,max-tokens=48"
    beside = {**figures, "stream ITL max ms": ("stream", "itl_ms", "max")}
    for more in ((), ("-b", "2048")):
        paired.compare(" ".join(["7 B, one thread: a prompt of 160 words beside a stream", *more]),
                       (*shape, None, None, "-t", "1", *more),
                       ["--load", prompt + ",start=6", "--load", stream, "--timeout", "600"], beside)


PARTS = {"crowd32": crowd32, "six": six, "four": four, "alone": alone, "long": lambda: alone(paired.sized(5000, 60)),
         "classes": classes, "seven": seven}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
