#!/usr/bin/env python3
"""Where each microsecond of a token goes: CPU time of the server by what it does, on the worker (with its compute threads)
and on the loop, while so many clients read streams. Functions are told apart by their names, what the kernel does by the
thread that it does it for. Needs `perf` (Debian: linux-perf) and leave to use it.

    bench/profile.py [STREAMS …]          1 16 64 256 by default

MODEL (default: the demo, the 24 M and the 0.5 B model in turn), SECONDS of each measurement (5); the others as in
bench/paired.py. Time that a compute thread waits for another one at a barrier is booked as decoding.
"""
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

import paired

STREAMS = [int(word) for word in sys.argv[1:]] or paired.sized([1, 16, 64, 256], [1, 2])
SECONDS = float(paired.from_environment("SECONDS", paired.sized("5", "1")))
HERTZ = 2000
# A stream reads that many tokens before it asks again, so that prompts hardly count.
TOKENS = 400
CELLS = 512
PROBE_S = 0.2

MODELS = [os.path.join(paired.ROOT, "models/demo/chasqui-demo.gguf"),
          *(os.path.join(paired.ROOT, "build/models", name) for name in ("random-24m-f16.gguf", "random-0.5b-q4_0.gguf"))]

# The first that fits. Ours are in the namespace chasqui.
WORKER = [
    ("decode", r"ggml|llama_(context|decode|kv|memory|batch|graph|ubatch)|llm_|tinyBLAS|gemm|gemv|vec_dot|quantize|sched_yield|expf|sincosf|set_input"),
    ("sampling", r"[Ss]ampl|LogitRow|LogitCut|RowKernels|weigh_as|::gather|::maxima|softmax|Penalt|count_for_mass"),
    ("text", r"TextAssembler|token_to_piece|SpecialCutter|Stop|utf8|llama_vocab|AnswerParser|Tokenizer"),
    ("scheduling", r"Scheduler|StepPlan|Reuse|PrefixCache|Ledger|StepTime|Speculation|Sequence|Forecast|Urgency|NgramIndex"),
    ("delivery", r"chasqui::"),
    ("memory", r"^__mem|malloc|free|operator (new|delete)"),
]
LOOP = [
    ("frames", r"[Jj]son|Sse|Frame|[Aa]nswer|Sink|chat|escape"),
    ("network", r"boost|asio|Connection|Exchange|llhttp|EventLoop"),
    ("delivery", r"chasqui::"),
]
COLUMNS = ["decode", "sampling", "text", "scheduling", "delivery", "memory", "kernel", "other",
           "loop: delivery", "loop: frames", "loop: network", "loop: kernel", "loop: other", "pool"]


def part_of(thread, in_kernel, symbol):
    if thread == "pool":
        # Compute threads are made before there is a worker, and have no name of their own.
        computes = "yield" in symbol if in_kernel else re.search(WORKER[0][1], symbol)
        return "decode" if computes else "pool"
    before = "loop: " if thread == "loop" else ""
    if in_kernel:
        # A yield is how a compute thread waits for the others.
        return before + ("decode" if not before and "yield" in symbol else "kernel")
    for name, pattern in LOOP if before else WORKER:
        if re.search(pattern, symbol):
            return before + name
    return before + "other"


def kinds_of_threads(pid):
    """{thread: worker, loop or pool}."""
    kinds = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/comm", encoding="utf-8") as file:
            name = file.read().strip()
        kinds[int(thread)] = "loop" if int(thread) == pid else "worker" if name.startswith("worker") else "pool"
    return kinds


def samples(pid, file):
    subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-F", str(HERTZ), "-p", str(pid), "-o", file, "--",
                    "sleep", str(SECONDS)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    kinds = kinds_of_threads(pid)
    script = subprocess.run(["perf", "script", "-i", file, "-F", "tid,ip,sym,dso"], check=True, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    found = collections.Counter()
    for line in script.splitlines():
        match = re.match(r"\s*(\d+)\s+([0-9a-f]+) (.*) \(([^()]*)\)$", line)
        if match:
            in_kernel = match[4].startswith("[") and match[4] != "[vdso]"
            found[part_of(kinds.get(int(match[1]), "pool"), in_kernel, match[3])] += 1
    return found


def measure(model, streams):
    load = f"clients={streams},requests={streams * 1000},prompt-words=8,max-tokens={TOKENS}"
    with paired.Server("chasqui", model, streams, streams * CELLS, "--no-log-requests") as server, \
            tempfile.TemporaryDirectory() as folder:
        client = subprocess.Popen([paired.CHASQUI, "bench", "--url", server.url, "--no-progress", "--ignore-eos", "--json",
                                   os.path.join(folder, "report"), "--load", load], stdout=subprocess.DEVNULL)
        try:
            while server.metric("chasqui_generation_tokens_total") < 4 * streams:
                if client.poll() is not None:
                    sys.exit("the load ended before it was measured")
                subprocess.run(["sleep", str(PROBE_S)], check=True)
            before = server.metric("chasqui_generation_tokens_total")
            found = samples(server.process.pid, os.path.join(folder, "perf.data"))
            tokens = server.metric("chasqui_generation_tokens_total") - before
        finally:
            client.kill()
            client.wait()
    return {column: found[column] * 1e6 / HERTZ / tokens for column in COLUMNS}


def main():
    if shutil.which("perf") is None:
        sys.exit("perf is missing (Debian: apt install linux-perf)")
    models = [paired.from_environment("MODEL", "")] if os.environ.get("MODEL") else MODELS
    print(f"µs of CPU time for a token, {SECONDS:g} s each, load average {os.getloadavg()[0]:.2f}\n")
    print("| model | streams | " + " | ".join(COLUMNS) + " | together |")
    print("|---|---:|" + "---:|" * (len(COLUMNS) + 1))
    for model in models:
        name = os.path.basename(model).removesuffix(".gguf")
        for streams in STREAMS:
            found = measure(model, streams)
            cells = [*found.values(), sum(found.values())]
            shown = " | ".join(f"{value:,.0f}" if value >= 100 else f"{value:.2g}" for value in cells)
            print(f"| {name} | {streams} | {shown} |", flush=True)
            paired.record(f"{name}, {streams} streams: µs a token", {
                column: {"chasqui": round(value, 3)} for column, value in found.items()})


if __name__ == "__main__":
    main()
