#!/usr/bin/env python3
"""Builds the fuzz targets of tests/fuzz with clang, libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer, and runs
them: tools/fuzz.py [--seconds S] [TARGET …]. The seconds are of all targets together. Exit status 1 when one found
something: the input is then in build/fuzz/found; put it into tests/fuzz/corpus/TARGET together with the fix.

What a run learns is kept in build/fuzz/corpus, so that the next one goes on from there.
"""
import argparse
import concurrent.futures
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def llama_source():
    """Where the build has the source of libllama, with the decoders of pictures and sounds."""
    with open(f"{ROOT}/build/CMakeCache.txt", encoding="utf-8") as file:
        cache = dict(re.findall(r"^(\w+):\w+=(.*)$", file.read(), re.M))
    with open(f"{ROOT}/cmake/Libllama.cmake", encoding="utf-8") as file:
        version = re.search(r'CHASQUI_LLAMA_VERSION "(.*)"', file.read())[1]
    return cache.get("CHASQUI_LLAMA_SOURCE") or f"{cache['CHASQUI_CACHE']}/src/llama.cpp-{version}"


OUT = os.path.join(ROOT, "build/fuzz")
CORPUS = os.path.join(ROOT, "tests/fuzz/corpus")
CLANG = os.environ.get("FUZZ_CLANG", "clang++-14")
SANITIZERS = "address,undefined"
# NDEBUG as in the release: a library whose assertions are off must do no harm either.
FLAGS = ["-g", "-O1", "-DNDEBUG", "-fno-omit-frame-pointer", f"-fsanitize=fuzzer-no-link,{SANITIZERS}", "-fno-sanitize-recover=all",
         "-DLLHTTP_STRICT_MODE=1", f"-I{ROOT}/src", f"-I{ROOT}/tests/fuzz", "-isystem", "/usr/share/include/llhttp",
         f"-I{ROOT}/third_party/mtmd", "-isystem", f"{llama_source()}/vendor"]
LLHTTP = sorted(glob.glob("/usr/share/llhttp/*.c"))

BASE = ["src/base/error.cpp", "src/base/log.cpp", "src/base/clock.cpp", "src/base/utf8.cpp",
        "src/base/random_bits.cpp", "src/base/json_writer.cpp", "src/base/pages.cpp", "src/base/freed_memory.cpp"]
CORE = ["src/core/adapter_set.cpp", "src/core/event.cpp", "src/core/request.cpp", "src/core/checkpoints.cpp",
        "src/core/media.cpp", "src/core/sampling.cpp"]
# Files that also hold what a target never calls: what that would need is left out.
WITHOUT_THE_REST = ["-no-pie", "-Wl,-z,lazy", "-Wl,--unresolved-symbols=ignore-all"]
# What each target is made of, beside tests/fuzz/TARGET.cpp, and the libraries that it needs.
TARGETS = {
    "http": (BASE + ["src/net/http_parser.cpp", "src/net/head_scanner.cpp", "src/net/http_request.cpp",
                     "src/net/http_headers.cpp"] + LLHTTP, []),
    "frames": (BASE + ["src/net/frame_scanner.cpp"], []),
    "json": (BASE + CORE + ["src/api/body/fields.cpp", "src/api/body/generation_fields.cpp",
                             "src/api/body/generation_readers.cpp"], ["-lboost_json"]),
    "schema": (BASE + ["src/api/body/fields.cpp", "src/api/schema/schema_check.cpp", "src/api/schema/schema_leaves.cpp",
                       "src/api/schema/schema_overlap.cpp", "src/api/schema/schema_pattern.cpp"], ["-lboost_json"]),
    "grammar": (BASE + ["src/model/grammar_shape.cpp", "src/model/grammar/gbnf.cpp", "src/model/grammar/utf8_ranges.cpp"], []),
    "automaton": (BASE + ["src/model/grammar_shape.cpp"] +
                  [f"src/model/grammar/{name}.cpp" for name in ("automaton", "gbnf", "grammar_masks", "grammar_matcher",
                                                                "grammar_states", "rule_steps", "token_trie",
                                                                "utf8_ranges")], []),
    "schema_texts": (BASE + ["src/api/body/fields.cpp", "src/api/schema/schema_leaves.cpp",
                             "src/api/schema/schema_overlap.cpp", "src/api/schema/schema_pattern.cpp"] +
                     [f"src/api/schema/{name}.cpp" for name in ("array_rules", "json_decimal", "member_layout", "object_rules", "schema_facets",
                                                                "schema_formats", "schema_rules", "schema_source",
                                                                "schema_values")] +
                     [f"src/model/grammar/{name}.cpp" for name in ("automaton", "code_set", "gbnf", "grammar_states",
                                                                   "number_language", "rule_steps", "rule_text",
                                                                   "text_language", "text_pattern", "text_pattern_reader",
                                                                   "utf8_ranges")], ["-lboost_json"]),
    "keys": (BASE + CORE + ["src/api/core/key_list.cpp", "src/base/text_file.cpp", "src/net/sha256.cpp"], ["-lcrypto"]),
    "toml": (BASE + ["src/app/toml_file.cpp"], []),
    "snapshot": (BASE + ["src/base/checksum.cpp", "src/core/kv_snapshot.cpp", "src/cache/snapshot_file.cpp",
                         "src/cache/whole_file.cpp"], []),
    "chat": (BASE + CORE + ["src/api/body/fields.cpp", "src/api/body/generation_fields.cpp",
                            "src/api/body/generation_readers.cpp", "src/api/body/prompt.cpp",
                            "src/api/body/chat_body.cpp", "src/api/anthropic/anthropic_body.cpp",
                            "src/api/ollama/ollama_body.cpp", "src/api/body/tool_limits.cpp",
                            "src/api/core/skipped_tools.cpp", "src/api/body/media_intake.cpp",
                            "src/api/body/media_folder.cpp", "src/base/base64.cpp",
                            "src/base/random_id.cpp", "src/model/sim_media.cpp", "src/model/sim_tokenizer.cpp",
                            "src/model/grammar_shape.cpp"], ["-lboost_json", *WITHOUT_THE_REST]),
    "media": (BASE + ["src/model/picture_file.cpp", "src/model/sound_file.cpp", "third_party/mtmd/stb_image.cpp",
                      "third_party/mtmd/miniaudio.cpp"], []),
    "resume": (BASE + ["src/api/delivery/stream_ring.cpp", "src/api/delivery/stream_offset.cpp"], []),
    "session": (BASE + ["src/base/checksum.cpp", "src/engine/session_file.cpp", "src/engine/session_turn.cpp"], []),
}
# toml++ says "unreachable" of letters beyond ASCII that come where it looks for blanks, and takes them for blanks or not.
# The file is the operator's own.
MORE_FLAGS = {"src/app/toml_file.cpp": ["-fno-sanitize=unreachable"],
              # They shift and convert numbers beyond what the language defines; what they read and write is checked.
              "third_party/mtmd/stb_image.cpp": ["-w", "-fno-sanitize=undefined"],
              "third_party/mtmd/miniaudio.cpp": ["-w", "-fno-sanitize=undefined"]}
INPUT_BYTES_MAX = 4096
# What may take work and memory that grow faster than its bytes gets longer inputs. Those targets also measure their own
# computing time for each input (tests/fuzz/fuzz.h).
LONG_INPUT_BYTES_MAX = 16384
LONG_INPUTS = {"json", "schema", "schema_texts", "grammar", "chat"}
# A target that takes longer for one input, or more memory for all or in one piece, has found something.
LIMITS = ["-timeout=10", "-rss_limit_mb=2048", "-malloc_limit_mb=256", "-detect_leaks=1"]


def run(command, **options):
    return subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


def object_of(source):
    return os.path.join(OUT, "obj", source.strip("/").replace("/", "-") + ".o")


def newest_header():
    headers = glob.glob(f"{ROOT}/src/**/*.h", recursive=True) + glob.glob(f"{ROOT}/tests/fuzz/*.h")
    return max(os.path.getmtime(header) for header in headers + [os.path.abspath(__file__)])


def compile_one(source, headers):
    out = object_of(source)
    path = os.path.join(ROOT, source)
    if os.path.exists(out) and os.path.getmtime(out) > max(headers, os.path.getmtime(path)):
        return
    language = ["-x", "c"] if source.endswith(".c") else ["-std=c++20"]
    done = run([CLANG, *language, *FLAGS, *MORE_FLAGS.get(source, []), "-c", path, "-o", out])
    if done.returncode != 0:
        sys.exit(f"fuzz: {source} does not compile:\n{done.stdout}")


def build(names):
    os.makedirs(os.path.join(OUT, "obj"), exist_ok=True)
    sources = {f"tests/fuzz/{name}.cpp" for name in names}.union(*(TARGETS[name][0] for name in names))
    headers = newest_header()
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", os.cpu_count()))) as pool:
        list(pool.map(lambda source: compile_one(source, headers), sorted(sources)))
    for name in names:
        objects = [object_of(source) for source in [f"tests/fuzz/{name}.cpp", *TARGETS[name][0]]]
        done = run([CLANG, f"-fsanitize=fuzzer,{SANITIZERS}", *objects, *TARGETS[name][1], "-o", f"{OUT}/{name}"])
        if done.returncode != 0:
            sys.exit(f"fuzz: {name} cannot be linked:\n{done.stdout}")


def fuzz(name, seconds, seed):
    grown, found = f"{OUT}/corpus/{name}", f"{OUT}/found/{name}-"
    for folder in grown, os.path.dirname(found):
        os.makedirs(folder, exist_ok=True)
    seeds = [folder for folder in [f"{CORPUS}/{name}"] if os.path.isdir(folder)]
    done = run([f"{OUT}/{name}", f"-max_total_time={seconds}", f"-seed={seed}", f"-artifact_prefix={found}",
                f"-max_len={LONG_INPUT_BYTES_MAX if name in LONG_INPUTS else INPUT_BYTES_MAX}",
                "-print_final_stats=1", *LIMITS, grown, *seeds])
    units = re.search(r"stat::number_of_executed_units:\s*(\d+)", done.stdout)
    count = int(units[1]) if units else 0
    print(f"  {name:<10} {count:>12,} inputs   {'nothing found' if done.returncode == 0 else 'FOUND SOMETHING'}", flush=True)
    if done.returncode != 0:
        print("\n".join(done.stdout.splitlines()[-60:]))
    return count, done.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=int, default=60, help="of all targets together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument("target", nargs="*", choices=[*TARGETS, []])
    arguments = parser.parse_args()
    names = arguments.target or list(TARGETS)
    build(names)
    if arguments.build_only:
        return 0
    each = max(1, arguments.seconds // len(names))
    results = [fuzz(name, each, arguments.seed) for name in names]
    print(f"  {'together':<10} {sum(count for count, _ in results):>12,} inputs in {each * len(names)} s")
    return 0 if all(good for _, good in results) else 1


if __name__ == "__main__":
    sys.exit(main())
