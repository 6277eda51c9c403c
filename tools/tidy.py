#!/usr/bin/env python3
"""The rules of the house that a compiler does not check: who may include whom, which folder owns which header, sizes,
banned words, coroutine shapes that g++ 12 miscompiles, subjects of commits. Reads text, not C++, so it takes a blink and
needs no build.

    tools/tidy.py              prints `file:line: rule: message` for each fault; exit status 1 when there is one
    tools/tidy.py --self-test  checks the checker against the examples in tools/tidy_test.py
"""
# Only modules that Debian's python3-minimal has: no dataclasses, no pathlib, no argparse.
import bisect
import os
import re
import subprocess
import sys
from collections import namedtuple

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
COLUMNS_MAX = 120

# Who may include whom, beside itself. ARCHITECTURE.md has the picture; CMakeLists.txt has the same table for linking.
MAY_INCLUDE = {
    "base": "",
    "core": "base",
    "cache": "core base",
    "sched": "cache core base",
    "jobs": "cache base",
    "model": "core base",
    "engine": "sched cache model core base",
    "sim": "engine sched cache core base",
    "record": "sim sched cache core base",
    "net": "base",
    "api": "net engine model jobs core base",
    "capi": "api net engine model core base",
    "bench": "net base",
    "cli": "bench net engine model core base",
    "pull": "cli net cache base",
    "publish": "cache core base",
    "store": "pull engine jobs cache model net core base",
    "app": "base core cache sched jobs model engine sim record net api bench cli pull publish store",
}

# The same within api, where each folder is a dialect, or what several of them share. Tests are free.
API_MAY_INCLUDE = {
    "core": "",
    "schema": "",
    "body": "core schema",
    "observe": "core",
    "delivery": "body core",
    "admin": "delivery body core",
    "openai": "delivery body core",
    "anthropic": "openai body core",
    "llama_server": "openai body core",
    "session": "openai delivery body core",
    "batch": "delivery body core",
    "ollama": "openai body core",
    "frames": "admin session openai body core",
    "routes": "admin anthropic batch llama_server observe ollama openai delivery session body core",
}


# name
# pattern  searched in each line, without comments and the insides of strings; include lines are kept
# allowed  matched at the start of the path: where the pattern is at home
# message
# scope    matched at the start of the path: where the rule holds at all
Rule = namedtuple("Rule", "name pattern allowed message scope", defaults=[""])
Fault = namedtuple("Fault", "path line rule message")

TEST = r"src/(?:\w+/)+\w+_test\.cpp"

# What belongs to some files only. The towers stand because llama.h and sockets cannot be in the same file.
OWNED = [
    Rule("owner-llama", r'#\s*include\s*(<(llama|ggml|gguf)\b|"(?!llhttp)[^"/]+"|["<](common|nlohmann|llama|ggml)/)',
         r"src/model/\w+\.cpp", "libllama, llama-common and what comes with them are seen by src/model/*.cpp only"),
    Rule("owner-coroutine", r"#\s*include\s*<coroutine>|\bco_(await|yield|return)\b", r"src/(net|api|bench|cli|app)/",
         "coroutines live in net, api, bench, cli and app"),
    Rule("owner-socket", r'#\s*include\s*["<](sys/(epoll|socket|un)\.h|netinet/|netdb\.h|arpa/|openssl/|llhttp)',
         r"src/(net/|model/content_hash\.cpp$|store/sealed_store\.cpp$|app/decoder_process\.cpp$)",
         "sockets, TLS and HTTP parsing live in net; store/sealed_store encrypts; app/decoder_process has a pair of sockets "
         "to a child of its own"),
    Rule("owner-curl", r"#\s*include\s*<curl/", r"src/pull/curl_library\.h$",
         "libcurl is loaded by pull/curl_library: `chasqui pull`, --media-url-hosts and stores alone open connections to others"),
    Rule("owner-loader", r"#\s*include\s*<dlfcn\.h>|\bdl(open|sym|close)\s*\(", r"src/base/shared_library\.cpp$",
         "base/shared_library loads libraries and finds their functions"),
    Rule("owner-json", r"#\s*include\s*<boost/json", r"src/(api/|capi/|cli/|pull/|(bench|sim)/trace|app/config|app/bench_command)",
         "JSON is parsed in api, capi, cli, pull, bench/trace, sim/trace, app/config and app/bench_command"),
    Rule("owner-asio", r"#\s*include\s*<boost/asio", r"src/(net|api|bench|cli|app)/",
         "Asio is seen by net, api, bench, cli and app"),
    Rule("owner-mutex", r"#\s*include\s*<(mutex|shared_mutex|condition_variable|semaphore|latch|barrier)>|"
         r"\bstd::(\w*mutex|\w+_lock|lock_guard|condition_variable\w*)\b", r"src/base/(mailbox|shared_lock)\.h$",
         "threads meet in base/mailbox.h; base/shared_lock.h protects what a library does not"),
    Rule("owner-thread", r"#\s*include\s*<(thread|pthread\.h|future)>|\bstd::(jthread|thread|async)\b",
         r"src/(engine/(worker|dispatcher|snapshot_disk|snapshot_exchange|media_encodings)|net/offload|base/thread_name|app/)|" + TEST,
         "threads are started by engine/worker, engine/dispatcher, engine/snapshot_disk, engine/snapshot_exchange, "
         "engine/media_encodings, net/offload and app"),
    Rule("owner-atomic", r"#\s*include\s*<atomic>|\bstd::atomic", r"src/(base|engine|net)/|src/app/(log_writer|record_writer|kv_publisher|exit_guard|queue_thread)|src/model/(core_share|(llama|sim|sleepy)_)|" + TEST,
         "atomics live in base, engine, net, app/log_writer, app/record_writer, app/kv_publisher, app/exit_guard, app/queue_thread, model/core_share, model/llama_* and model/sim_*"),
    Rule("owner-clock", r"_clock::now\b|\bgettimeofday\b|\bclock_gettime\b|\btime\s*\(\s*(nullptr|NULL|0)\s*\)",
         r"src/base/(clock|log)\.cpp$", "time is an argument: take a TimePoint or a Clock (base/clock.h)"),
    Rule("owner-process", r"\b(getenv|setenv|sigaction)\s*\(|(?<![\w.>:])((std)?::)?(_?exit|quick_exit)\s*\(|"
         r"(?<!\w)(std)?::signal\s*\(|(?<![\w.>:])signal\s*\(\s*SIG", r"src/app/|src/cli/(terminal|chat)\.cpp",
         "environment, exit and signals belong to app, cli/terminal and cli/chat"),
    Rule("owner-catch", r"\bcatch\s*\(", r"src/(model/\w+\.cpp|api/|capi/chasqui\.cpp|net/(event_loop|offload)|store/xml_text|app/)",
         "exceptions are caught where a throwing library is called (model, api, capi/chasqui, net/event_loop, net/offload, "
         "store/xml_text, app)"),
    Rule("owner-node", r'#\s*include\s*"api/core/node\.h"',
         r"src/(api/(routes|admin|frames)|app)/|src/api/core/(fake_)?node\.|" + TEST,
         "a handler gets a Call; only routes, admin, frames and app see the whole node"),
    Rule("owner-test", r'#\s*include\s*(<(gtest|gmock)/|"(tests/|(\w+/)+(fake_\w+|\w+_test)\.))', TEST + r"|src/(\w+/)+fake_",
         "fakes and gtest are for tests"),
]

BANNED = [
    Rule("banned-output", r"\bstd::(cout|cerr|clog)\b|(?<!\w)v?f?printf\s*\(|(?<!\w)f?puts\s*\(", r"src/app/",
         "write to the log (base/log.h)", scope=r"src/"),
    Rule("banned-new", r"^(?!.*(_ptr<.*>|\w+Ptr)\s*\w*\(new\b).*(?<!operator )\bnew(\s+[\w:]|\s*\(std::no)", r"$^",
         "use std::make_unique or a container; where a constructor is private, std::unique_ptr<T>(new T) in one line"),
    Rule("banned-delete", r"(?<!operator )\bdelete\b\s*(\[\s*\]\s*)?[\w*(:]", r"$^", "owners free what they own"),
    Rule("banned-sleep", r"\b(sleep_for|sleep_until|usleep|nanosleep)\b|(?<![\w.>])sleep\s*\(", r"$^",
         "wait for an event or a timer of the loop; tests use ManualClock", scope=r"src/"),
    Rule("banned-rand", r"(?<![\w.>])s?rand\s*\(", r"$^", "use a seeded generator from <random>"),
    Rule("banned-detach", r"(\.|->)detach\s*\(\s*\)", r"$^", "a thread is joined by the part that started it"),
]

# Rules that a file breaks on purpose: (rule, path, why). Without a reason there is no exception.
EXCEPTIONS = [
    ("banned-sleep", r"src/(app/model_parts\.cpp|model/sim\w*\.(h|cpp))", "the simulated model spends real time on purpose"),
    ("banned-new", r"src/model/llama_runtime\.cpp", "the log is never destroyed: compute threads may outlive main()"),
    ("owner-process", r"src/sched/(reuse_)?simulation_test\.cpp", "the seed of one more run comes from the environment"),
    ("owner-process", r"src/api/shapes_test\.cpp", "how many, and their seed, come from the environment"),
    ("owner-coroutine", r"src/store/http_transfers_test\.cpp", "handlers of the server that it asks"),
    ("owner-process", r"src/store/real_stores_test\.cpp", "which stores there are comes from the environment"),
    ("owner-thread", r"src/model/model_config\.cpp", "asks how many cores there are; starts nothing"),
]

FOREIGN_FOLDERS = {"tests", "common", "nlohmann"}  # in quotes all the same; the tables above say who may include them

BANNED_WORDS = {"manager", "helper", "helpers", "util", "utils", "common"}
BANNED_NAMES = {"context", "data"}  # as the whole name; a word that says what of is enough

# Also inside names in CamelCase, as tests have them.
BANNED_PROSE = re.compile(r"(?i:\b(nobody|whoever|somebody|who comes|what becomes of)\b)|(Nobody|Whoever|Somebody)(?![a-z])")
PROSE = (r"[A-Z]+\.md|(bench|docs)/(\w+/)*\w+\.md|"
         r"(src|tests|page|tools|clients|examples|bench|deploy)/.*\.(h|cpp|js|mjs|py|sh|json|ya?ml)")
PROSE_EXCEPT = r"tools/tidy(_test)?\.py|page/built/.*|.*/(node_modules|package-lock\.json)\b.*|docs/performance/.*"

SUBJECT_MAX = 72
SUBJECTS_SINCE = "d37f00e"  # what is older stays as it is


class Source:
    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.code = blank(text)  # comments and the insides of strings blanked; same length, same lines
        self.starts = [0] + [m.end() for m in re.finditer("\n", text)]
        quoted = re.finditer(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', self.code, re.M)
        self.includes = [(self.line_of(m.start(1)), m[1]) for m in quoted]

    def line_of(self, offset):
        return bisect.bisect_right(self.starts, offset)

    @property
    def folder(self):
        parts = self.path.split("/")
        return parts[1] if parts[0] == "src" and len(parts) > 2 else ""

    @property
    def is_test(self):
        return not self.folder or self.path.endswith("_test.cpp")


# A quote after a hexadecimal digit separates digits.
LITERAL = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|'
    r"(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'", re.S)


def blank(text):
    def replace(match):
        found = match[0]
        line_before = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
        if found[0] == '"' and re.fullmatch(r"\s*#\s*include\s*", line_before):
            return found
        inside = re.sub(r"[^\n]", " ", found)
        return inside if found[0] == "/" else found[0] + inside[1:-1] + found[-1]

    return LITERAL.sub(replace, text)


# kind   namespace, type, function, lambda, capturing lambda, list (a braced initializer) or inner
# start  offset of the first character of its head
# head   what stands before the brace, back to the end of the statement before
Block = namedtuple("Block", "kind start head")


class Blocks:
    """Walks through the braces of one file: long functions, using-directives, statements with co_await.

    Relies on the format that clang-format gives: `name{` is an initializer, `name {` opens a block."""

    TOKEN = re.compile(r"[{};]|\bco_(?:await|yield|return)\b|\busing\s+namespace\b")
    TYPE = re.compile(r"(?:^|[\s>])(?:class|struct|union|enum)\s+(?:(?:class|struct)\s+)?"
                      r"(?:\[\[.*?\]\]\s*|alignas\s*\([^)]*\)\s*)*\w+[^()=]*$", re.S)
    LAMBDA = re.compile(r"(?<!\[)\[([^\[\]]*)\]\s*(?:<[^{}]*>\s*)?(?:\([^{}]*\)\s*)?(?:mutable\s*|noexcept\s*)*"
                        r"(?:->[^{}()]*)?$")

    def __init__(self, source):
        self.source = source
        # Directives would end up in the heads of functions.
        self.code = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", lambda m: re.sub(r"[^\n]", " ", m[0]), source.code, flags=re.M)
        self.open = []
        self.head_start = 0
        self.faults = []

    def check(self):
        for token in self.TOKEN.finditer(self.code):
            at, found = token.start(), token[0]
            if found == "{":
                self.enter(at)
            elif found == "}":
                self.leave(at)
            elif found == ";":
                self.end_statement(at)
            elif found.startswith("co_"):
                self.check_lambda(at)
            elif all(block.kind == "namespace" for block in self.open):
                self.fault(at, "using-namespace", "name what you use, or put the directive inside a function")
        return self.faults

    def fault(self, offset, rule, message):
        self.faults.append(Fault(self.source.path, self.source.line_of(offset), rule, message))

    def enter(self, at):
        head = self.code[self.head_start:at]
        start = self.head_start + len(head) - len(head.lstrip())
        kind = self.kind_of(head)
        if kind != "list":  # the statement goes on around a braced list
            self.end_statement(at)
        self.open.append(Block(kind, start, head.strip()))

    def kind_of(self, head):
        bare = head.rstrip()
        if bare.endswith(("=", ",", "(", "return", "co_return", "{")) or (bare and bare == head and bare[-1] != ")"):
            return "list"
        captures = self.LAMBDA.search(bare)
        if captures:
            return "capturing lambda" if captures[1].strip() else "lambda"
        if re.search(r"\bnamespace\b", bare) or re.fullmatch(r'extern\s*"\s*"', bare):
            return "namespace"
        if self.TYPE.search(bare):
            return "type"
        outside = all(block.kind in ("namespace", "type") for block in self.open)
        return "function" if outside and "(" in bare else "inner"

    def leave(self, at):
        if not self.open:
            return
        block = self.open.pop()
        if block.kind == "list":
            return
        self.end_statement(at)
        outermost = all(other.kind in ("namespace", "type") for other in self.open)
        if outermost and block.kind not in ("namespace", "type"):
            lines = self.source.line_of(at) - self.source.line_of(block.start) + 1
            if lines > FUNCTION_LINES_MAX:
                name = " ".join(re.sub(r"^template\s*<[^{}]*?>\s*(?=\w)", "", block.head).split())[:60]
                self.fault(block.start, "function-lines", f"{lines} lines, at most {FUNCTION_LINES_MAX}: {name}")

    def end_statement(self, at):
        statement = self.code[self.head_start:at]
        first = statement.find("co_await")
        if first >= 0:
            if len(re.findall(r"\bco_await\b", statement)) > 1:
                self.fault(self.head_start + first, "co-await-once", "one per statement, into a named variable")
            if "?" in statement:
                self.fault(self.head_start + first, "co-await-conditional", "no co_await beside ?: ; use if and else")
        self.head_start = at + 1

    def check_lambda(self, at):
        kind = next((block.kind for block in reversed(self.open) if block.kind in ("lambda", "capturing lambda")), "")
        if kind == "capturing lambda":
            self.fault(at, "co-await-lambda",
                       "a coroutine is a named function: the captures of a lambda die before it resumes")


def check_lines(source):
    lines = source.text.splitlines()
    if len(lines) > FILE_LINES_MAX:
        yield FILE_LINES_MAX + 1, "file-lines", f"{len(lines)} lines, at most {FILE_LINES_MAX}: split the file"
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS_MAX:
            yield number, "columns", f"{len(line)} columns, at most {COLUMNS_MAX}"
        if re.search(r"\b(TODO|FIXME|XXX)\b", line):
            yield number, "banned-todo", "do it, or write an issue"
    rules = [r for r in (OWNED if source.folder else []) + BANNED
             if re.match(r.scope, source.path) and not re.match(r.allowed, source.path)]
    for number, line in enumerate(source.code.splitlines(), 1):
        for rule in rules:
            if re.search(rule.pattern, line):
                yield number, rule.name, rule.message


def check_header(source):
    if not source.path.endswith(".h"):
        return
    if not source.text.startswith(("//", "/*")):
        yield 1, "header-comment", "a header starts with what it is, who owns it and which thread calls it"
    if not re.search(r"^#pragma once$", source.text, re.M):
        yield 1, "pragma-once", "a header needs #pragma once"


def check_names(source):
    stem = source.path.split("/")[-1].split(".")[0]
    if stem in BANNED_NAMES or BANNED_WORDS & set(stem.split("_")):
        yield 1, "name-file", f"{stem} says nothing: name the file after its noun"
    types = re.compile(r"\b(?:class|struct|union|enum(?: class| struct)?|using)\s+(?:\[\[.*?\]\]\s*)?([A-Z]\w*)")
    for m in types.finditer(source.code):
        words = [word.lower() for word in re.findall(r"[A-Z][a-z0-9]*", m[1])]
        if m[1].lower() in BANNED_NAMES or BANNED_WORDS & set(words):
            yield source.line_of(m.start()), "name-type", f"{m[1]} says nothing: name the type after its noun"


def check_includes(source, paths):
    if not source.folder:
        return
    if source.folder not in MAY_INCLUDE:
        yield 1, "folder", f"src/{source.folder} is not in the table of tools/tidy.py"
        return
    allowed = {source.folder, *MAY_INCLUDE[source.folder].split()}
    for line, name in source.includes:
        folder = name.split("/")[0]
        if folder in MAY_INCLUDE and folder not in allowed:
            yield line, "layer", f"{source.folder} may not include {folder}"
        elif folder in MAY_INCLUDE and "src/" + name not in paths:
            yield line, "include", f"there is no src/{name}"
        elif "/" in name and folder not in {*MAY_INCLUDE, *FOREIGN_FOLDERS}:
            yield line, "include", f'"{name}" is not ours: libraries are included with <>'
        if folder == source.folder == "api" and not source.is_test and "/fake_" not in source.path:
            yield from check_api_folder(source.path.split("/")[2], name.split("/")[1], line)
    if source.path.endswith(".cpp"):
        own = re.sub(r"(_test)?\.cpp$", ".h", source.path)[len("src/"):]
        first = re.search(r'#\s*include\s*["<]([^">]+)[">]', source.code)
        if "src/" + own in paths and (not first or first[1] != own):
            yield source.line_of(first.start()) if first else 1, "own-header", f'"{own}" comes first'


def check_api_folder(own, other, line):
    if own not in API_MAY_INCLUDE:
        yield 1, "folder", f"src/api/{own} is not in the table of tools/tidy.py"
    elif other != own and other not in API_MAY_INCLUDE[own].split():
        yield line, "layer", f"api/{own} may not include api/{other}"


def check_file_cycles(sources):
    """Files of api that need each other, a header and its source taken as one; tests and fakes left out."""
    edges = {}
    for path, source in sources.items():
        if path.startswith("src/api/") and not source.is_test and "/fake_" not in path:
            own = path.rsplit(".", 1)[0]
            others = {"src/" + name.rsplit(".", 1)[0]: line for line, name in source.includes if name.startswith("api/")}
            edges.setdefault(own, {}).update({other: (path, line) for other, line in others.items() if other != own})
    done, faults = set(), []

    def visit(file, trail):
        if file in trail:
            circle = trail[trail.index(file):]
            path, line = edges[circle[-1]][file]
            faults.append(Fault(path, line, "file-cycle", " -> ".join(circle + [file])))
        elif file not in done:
            for other in sorted(edges.get(file, {})):
                visit(other, trail + [file])
            done.add(file)

    for file in sorted(edges):
        visit(file, [])
    return faults


def is_prose(path):
    return re.fullmatch(PROSE, path) and not re.fullmatch(PROSE_EXCEPT, path)


def check_prose(path, text):
    """Words that leave open who acts, in pages, comments, messages and names of tests."""
    for number, line in enumerate(text.splitlines(), 1):
        found = BANNED_PROSE.search(line)
        if found:
            yield Fault(path, number, "banned-prose", f"{found[0]}: say who acts (the client, the server, the request)")


def check_links(files, exists):
    """Relative links of pages lead to a file of the tree, and to a heading of it where they name one."""
    for page, text in files.items():
        if not page.endswith(".md"):
            continue
        for number, line in enumerate(without_code(text).splitlines(), 1):
            for link in re.findall(r"\]\(([^)\s:]+)\)", line):
                path, _, heading = link.partition("#")
                path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
                if not exists(path):
                    yield Fault(page, number, "link", f"there is no {path}")
                elif heading and path in files and heading not in headings(files[path]):
                    yield Fault(page, number, "link", f"{path} has no heading #{heading}")


def without_code(text):
    return re.sub(r"(?ms)^```.*?^```", lambda m: re.sub(r"[^\n]", "", m[0]), text)


def headings(text):
    """As GitHub names them."""
    found = re.findall(r"(?m)^#+ (.*)$", without_code(text))
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in found}


def check_subjects(log):
    """Subjects of commits, given as lines of `git log --format=%h %s`."""
    for line in log.splitlines():
        commit, _, subject = line.partition(" ")
        if len(subject) > SUBJECT_MAX:
            yield Fault("git", 1, "subject", f"{commit} has {len(subject)} characters, at most {SUBJECT_MAX}: {subject}")


def new_commits(root):
    """Those since the rule is there; none where there is no git, or the history is cut off."""
    try:
        found = subprocess.run(["git", "-C", root, "log", "--no-merges", "--format=%h %s", f"{SUBJECTS_SINCE}..HEAD"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8", check=False)
    except OSError:
        return ""
    return found.stdout if found.returncode == 0 else ""


def check_cycles(sources):
    """Headers that include each other, each circle once, at its alphabetically first file."""
    edges = {path: [("src/" + name, line) for line, name in source.includes if "src/" + name in sources]
             for path, source in sources.items() if path.endswith(".h")}
    done = set()

    def visit(path, trail):
        if path in trail:
            circle = trail[trail.index(path):]
            first = min(circle)
            line = next(line for name, line in edges[first] if name in circle)
            yield Fault(first, line, "include-cycle", " -> ".join(circle + [path]))
        elif path not in done:
            for name, _ in edges.get(path, []):
                yield from visit(name, trail + [path])
            done.add(path)

    for path in sorted(edges):
        yield from visit(path, [])


def check_map(files):
    text = files.get("ARCHITECTURE.md", "")
    for folder in sorted({path.split("/")[1] for path in files if re.match(r"src/\w+/", path)}):
        if not re.search(rf"(`|/|\|\s*)(src/)?{folder}(`|/|\s*\|)", text):
            yield Fault("ARCHITECTURE.md", 1, "map", f"src/{folder} is not on the map")


def check(files, exists=None):
    """All faults of a tree, given as {path: text}; `exists` says which other files it has."""
    sources = {path: Source(path, text) for path, text in files.items() if path.endswith((".h", ".cpp"))}
    faults = set(check_map(files)) | set(check_cycles(sources)) | set(check_file_cycles(sources))
    faults |= set(check_subjects(files.get("git log", "")))
    faults |= set(check_links(files, exists or files.__contains__))
    for path, text in files.items():
        if is_prose(path):
            faults.update(check_prose(path, text))
    for source in sources.values():
        for found in (check_lines(source), check_header(source), check_names(source), check_includes(source, sources)):
            faults.update(Fault(source.path, *what) for what in found)
        faults.update(Blocks(source).check())
    return sorted(f for f in faults
                  if not any(rule == f.rule and re.fullmatch(path, f.path) for rule, path, _ in EXCEPTIONS))


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def read_tree(root):
    files = {"ARCHITECTURE.md": ""}
    for top in ("src", "tests", "bench", "tools", "examples", "page", "clients", "deploy", "docs"):
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders[:] = [name for name in folders if name not in ("node_modules", "built", "corpus")]
            for path in (os.path.relpath(os.path.join(folder, name), root) for name in names):
                if path.endswith((".h", ".cpp")) and top not in ("page", "clients") or is_prose(path):
                    files[path] = read(os.path.join(root, path))
    for path in os.listdir(root):
        if is_prose(path):
            files[path] = read(os.path.join(root, path))
    return files


def main(arguments):
    if arguments == ["--self-test"]:
        import tidy_test
        return tidy_test.run(check)
    if arguments:
        print(__doc__)
        return 2
    root = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    files = read_tree(root)
    exists = lambda path: os.path.exists(os.path.join(root, path))
    faults = check({**files, "git log": new_commits(root)}, exists)
    for fault in faults:
        print(f"{fault.path}:{fault.line}: {fault.rule}: {fault.message}")
    print(f"tidy: {len(files) - 1} files, {len(faults)} faults" if faults else f"tidy: {len(files) - 1} files, clean")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
