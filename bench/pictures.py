#!/usr/bin/env python3
"""One person chats while two others send pictures to a projector of the size of CLIP ViT-L/14. The stream should not pause.

    bench/pictures.py          PICTURES=6 (of both together) ROUNDS=3 LLAMA_SERVER=…
"""
import base64
import json
import os
import random
import statistics
import struct
import subprocess
import threading
import time
import urllib.request
import zlib

import paired

SIDE, PICTURES = paired.sized((336, int(os.environ.get("PICTURES", "6"))), (64, 2))
MODEL = paired.model("random-24m-f16.gguf")
NAME = paired.sized("mmproj-random-24m-large", "mmproj-random-24m")
PROJECTOR = os.path.join(paired.ROOT, "build/models/projectors", NAME + ".gguf")
if not os.path.exists(PROJECTOR):
    subprocess.run([os.path.join(paired.ROOT, "build/bin/mkmodel"), NAME, PROJECTOR], check=True)


def picture(seed):
    """A PNG of noise, another one for each seed."""
    dice = random.Random(seed)
    rows = b"".join(b"\0" + dice.randbytes(3 * SIDE) for _ in range(SIDE))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))


def post(server, content, **more):
    body = {"messages": [{"role": "user", "content": content}], "temperature": 0, "ignore_eos": True, **more}
    request = urllib.request.Request(server.url + "/v1/chat/completions", json.dumps(body).encode(),
                                     {"content-type": "application/json"})
    return urllib.request.urlopen(request, timeout=600)


def stream(server, tokens, times):
    """When each piece of an answer came."""
    with post(server, "Go on", max_tokens=tokens, stream=True) as answer:
        for line in answer:
            if line.startswith(b"data: {"):
                times.append(time.monotonic())


def look(server, seeds, took):
    for seed in seeds:
        url = "data:image/png;base64," + base64.b64encode(picture(seed)).decode()
        started = time.monotonic()
        content = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "What is it?"}]
        with post(server, content, max_tokens=1) as answer:
            assert json.load(answer)["usage"]["completion_tokens"] == 1
        took.append(time.monotonic() - started)


def run(side, first_seed):
    with paired.Server(side, MODEL, 4, 4 * 2048, "--mmproj", PROJECTOR) as server:
        alone = []
        stream(server, 200, alone)
        took, times = [], []
        ended = threading.Event()

        def go_on():
            while not ended.is_set():
                times.append([])
                stream(server, 1000, times[-1])

        talker = threading.Thread(target=go_on)
        talker.start()
        while not times or len(times[0]) < 20:
            time.sleep(0.01)
        began = time.monotonic()
        lookers = [threading.Thread(target=look, args=(server, range(first_seed + i, first_seed + PICTURES, 2), took))
                   for i in range(2)]
        for looker in lookers:
            looker.start()
        for looker in lookers:
            looker.join()
        whole = time.monotonic() - began
        until = time.monotonic()
        ended.set()
        talker.join()
    gaps = sorted(b - a for one in times for a, b in zip(one, one[1:]) if began <= b and a <= until)
    return {"pictures": len(took), "a picture s p50": statistics.median(took), "all pictures s": whole,
            "stream ITL alone p50 ms": 1000 * statistics.median(b - a for a, b in zip(alone, alone[1:])),
            "stream ITL p50 ms": 1000 * statistics.median(gaps),
            "stream ITL p99 ms": 1000 * gaps[int(0.99 * (len(gaps) - 1))], "stream ITL max ms": 1000 * gaps[-1],
            "stream tokens/s": len(gaps) / whole}


columns = {side: [] for side in paired.sides()}
for number, order in enumerate(paired.rounds()):
    for side in order:
        columns[side].append(run(side, 1000 * number))
paired.print_table(f"one stream beside {PICTURES} pictures of two clients", columns, list(columns["chasqui"][0]))
