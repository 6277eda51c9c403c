"""Examples for tools/tidy.py --self-test: a bad one breaks exactly the rule it is listed under, the good tree none."""

HEADER = "// What it is.\n#pragma once\n"
LONG_FUNCTION = "int f() {\n" + "  step();\n" * 70 + "}\n"

# rule -> [(path, text, …more files)]
BAD = {
    "layer": [
        ("src/core/a.h", HEADER + '#include "cache/b.h"\n', "src/cache/b.h", HEADER),
        ("src/net/a.cpp", '#include "core/b.h"\n', "src/core/b.h", HEADER),
        ("src/sched/a_test.cpp", '#include "model/b.h"\n', "src/model/b.h", HEADER),
        ("src/api/core/a.cpp", '#include "api/openai/b.h"\n', "src/api/openai/b.h", HEADER),
    ],
    "file-cycle": [
        ("src/api/core/a.h", HEADER, "src/api/core/a.cpp", '#include "api/core/a.h"\n#include "api/core/b.h"\n',
         "src/api/core/b.h", HEADER + '#include "api/core/a.h"\n'),
    ],
    "owner-node": [("src/api/openai/a.cpp", '#include "api/core/node.h"\n', "src/api/core/node.h", HEADER)],
    "link": [("docs/x.md", "[a](y.md)\n"), ("docs/x.md", "[a](#there)\n\n## Here\n")],
    "banned-prose": [("docs/api.md", "Nobody sees it.\n"), ("README.md", "It is told whoever asks.\n"),
                     ("src/core/x.cpp", "// Somebody reads it.\n"), ("tests/e2e/x.test.mjs", "it('harms nobody')\n"),
                     ("src/core/x_test.cpp", "TEST(X, HarmsNobody) {}\n"), ("page/src/x.js", "// whoever asks\n")],
    "subject": [("git log", "abc1234 " + "x" * 73 + "\n")],
    "folder": [("src/http/a.cpp", ""), ("src/api/misc/a.cpp", '#include "api/core/b.h"\n', "src/api/core/b.h", HEADER)],
    "map": [("src/base/a.cpp", "", "ARCHITECTURE.md", "The ground floor is called basement.")],
    "include": [
        ("src/core/a.h", HEADER + '#include "core/gone.h"\n'),
        ("src/net/a.cpp", '#include "boost/version.hpp"\n'),
    ],
    "include-cycle": [
        ("src/core/a.h", HEADER + '#include "core/b.h"\n', "src/core/b.h", HEADER + '#include "core/a.h"\n'),
        ("src/core/a.h", HEADER + '#include "core/b.h"\n', "src/core/b.h", HEADER + '#include "core/c.h"\n',
         "src/core/c.h", HEADER + '#include "core/b.h"\n'),
    ],
    "own-header": [("src/core/a.cpp", '#include <vector>\n#include "core/a.h"\n', "src/core/a.h", HEADER),
                   ("src/core/a_test.cpp", "int x;\n", "src/core/a.h", HEADER)],
    "owner-llama": [
        ("src/engine/a.cpp", '#include "llama.h"\n'),
        ("src/model/a.h", HEADER + "#include <llama-cpp.h>\n"),
        ("src/api/a.cpp", '#  include "chat.h"\n'),
        ("src/api/a.cpp", "#include <nlohmann/json.hpp>\n"),
    ],
    "owner-coroutine": [("src/engine/a.cpp", "#include <coroutine>\n"), ("src/base/a.cpp", "T f() { co_return 1; }\n")],
    "owner-socket": [("src/api/a.cpp", "#include <sys/socket.h>\n"), ("src/app/a.cpp", "#include <netinet/in.h>\n")],
    "owner-loader": [("src/net/a.cpp", "#include <dlfcn.h>\n"), ("src/base/a.cpp", 'auto* p = ::dlsym(library, "f");\n')],
    "owner-json": [("src/core/a.cpp", "#include <boost/json.hpp>\n"),
                   ("src/app/serve.cpp", "#include <boost/json.hpp>\n")],
    "owner-asio": [("src/engine/a.cpp", "#include <boost/asio/post.hpp>\n")],
    "owner-mutex": [("src/engine/a.cpp", "#include <mutex>\n"), ("src/base/metrics.cpp", "std::mutex m;\n")],
    "owner-thread": [("src/engine/runner.cpp", "#include <thread>\n"), ("src/api/a.cpp", "std::jthread t(f);\n")],
    "owner-atomic": [("src/sched/a.cpp", "#include <atomic>\n"), ("src/model/sim.cpp", "std::atomic<int> n;\n")],
    "owner-clock": [("src/sched/a.cpp", "auto t = std::chrono::steady_clock::now();\n"),
                    ("src/base/metrics.cpp", "auto t = time(nullptr);\n")],
    "owner-process": [("src/base/a.cpp", 'auto v = std::getenv("HOME");\n'),
                      ("src/net/a.cpp", "void f() { std::exit(1); }\n"),
                      ("src/net/a.cpp", "void f() { signal(SIGPIPE, SIG_IGN); }\n")],
    "owner-catch": [("src/engine/a.cpp", "void f() {\n  try {\n  } catch (...) {\n  }\n}\n"),
                    ("src/net/http.cpp", "void f() {\n  try {\n  } catch (...) {\n  }\n}\n")],
    "owner-test": [("src/core/a.cpp", "#include <gtest/gtest.h>\n"),
                   ("src/core/a.cpp", '#include "core/fake_b.h"\n', "src/core/fake_b.h", HEADER)],
    "banned-output": [("src/net/a.cpp", "void f() { std::cout << 1; }\n"),
                      ("src/base/a.cpp", 'void f() { printf("x"); }\n')],
    "banned-new": [("src/core/a.cpp", "auto p = new Row[4];\n"),
                   ("tests/a.cpp", "auto p = new (std::nothrow) Row;\n")],
    "banned-delete": [("src/core/a.cpp", "void f(int* p) { delete p; }\n"),
                      ("src/core/a.cpp", "void f() { delete[] p; }\n")],
    "banned-sleep": [("src/engine/a_test.cpp", "void f() { std::this_thread::sleep_for(d); }\n"),
                     ("src/net/a.cpp", "void f() { ::sleep(1); }\n")],
    "banned-rand": [("src/core/a.cpp", "int n = std::rand();\n"), ("bench/a.cpp", "void f() { srand(1); }\n")],
    "banned-detach": [("src/app/a.cpp", "void f() { std::thread(g).detach(); }\n")],
    "banned-todo": [("src/core/a.cpp", "// TODO: later\n"), ("src/core/a.cpp", "// FIXME\n")],
    "using-namespace": [("src/core/a.cpp", "namespace chasqui {\nusing namespace std;\n}\n"),
                        ("tests/a.cpp", "using namespace std;\n")],
    "file-lines": [("src/core/a.cpp", "int x;\n" * 401)],
    "columns": [("src/core/a.cpp", "// " + "ñ" * 118 + "\n")],
    "function-lines": [
        ("src/core/a.cpp", "namespace {\n" + LONG_FUNCTION + "}\n"),
        ("src/core/a.h", HEADER + "class A {\n  template <class T>\n" + LONG_FUNCTION + "};\n"),
        ("src/core/a.cpp", LONG_FUNCTION.replace("int f()", "A::A(int n) : n_{n}, m_(n)")),
        ("src/core/a_test.cpp", LONG_FUNCTION.replace("int f()", "TEST(A, b)")),
    ],
    "header-comment": [("src/core/a.h", "#pragma once\n")],
    "pragma-once": [("src/core/a.h", "// What it is.\n")],
    "name-file": [("src/core/string_util.h", HEADER), ("src/core/context.cpp", ""),
                  ("src/core/session_manager.cpp", "")],
    "name-type": [("src/core/a.h", HEADER + "class QueueManager {};\n"), ("src/core/a.h", HEADER + "struct Data;\n"),
                  ("src/core/a.h", HEADER + "using Context = int;\n")],
    "co-await-once": [("src/net/a.cpp", "T f() {\n  co_return g(co_await a(),\n             co_await b());\n}\n")],
    "co-await-conditional": [("src/net/a.cpp", "T f() { const auto x = c ? co_await a() : S(); }\n")],
    "co-await-lambda": [
        ("src/net/a.cpp",
         "void f() {\n  spawn([this](int n) mutable -> T {\n    if (n) {\n      co_await g();\n    }\n  });\n}\n"),
        ("src/net/a.cpp", "void f() {\n  spawn([&] { co_return 1; });\n}\n"),
    ],
}

GOOD = {
    "ARCHITECTURE.md": "| `base` | `src/core/` | net/ | `app` | model/ `api` |",
    "src/base/mailbox.h": HEADER + "#include <mutex>\nstd::mutex m;  // std::cout and new things are words here\n",
    "src/core/a.h": HEADER + "struct SamplingData {\n  SamplingData(const SamplingData&) = delete;\n  int n{1};\n};\n",
    "src/core/a.cpp": '#include "core/a.h"\n\n#include <new>\n\n#include "base/mailbox.h"\n\nnamespace chasqui {\n'
                      "void f() {\n  using namespace std::chrono_literals;\n  std::snprintf(b, 1, "
                      '"new Row; rand()");\n'
                      "  ::new (place) Row{1'000'000, 'x'};\n  auto s = R\"(rand() ; } co_await)\";\n}\n}\n",
    "src/core/a_test.cpp": '#include "core/a.h"\n\n#include <gtest/gtest.h>\n\n#include <thread>\n',
    "src/core/table.cpp": "const Row kTable[] = {\n" + "    {1, f(2)},\n" * 80 + "};\n",
    "src/model/llama_a.cpp": '#include "llama.h"\n#include "common/chat.h"\n#include <atomic>\n',
    "src/net/a.cpp": "T f(Wakeup& w) {\n  w.signal();\n  auto x = co_await g();\n  const auto y = x ? 1 : 2;\n"
                     "  auto each = [x](int n) { return n + x; };\n  auto run = [](int n) -> T { co_await h(n); };\n"
                     "  if (a[i]) {\n    co_await g();\n  }\n}\n"
                     "void Wakeup::signal() {}\n[[nodiscard]] T h() {\n  co_await g();\n}\n",
    "src/api/a.cpp": "std::unique_ptr<A> make() { return std::unique_ptr<A>(new A(1)); }\nint newline(int renew);\n",
    "src/app/serve.cpp": 'void f() { std::exit(std::printf("bye")); }\n',
}


def run(check):
    """0 when every bad example is found out, with nothing else said about it, and the good tree is clean."""
    wrong = [f"the good tree: {fault}" for fault in check(GOOD)]
    whole_map = {"ARCHITECTURE.md": "`base` `core` `cache` `sched` `model` `engine` `net` `http` `api` `app`"}
    for rule, examples in BAD.items():
        for number, example in enumerate(examples, 1):
            found = {fault.rule for fault in check(whole_map | dict(zip(example[::2], example[1::2])))}
            if found != {rule}:
                wrong.append(f"{rule}, example {number}: found {', '.join(sorted(found)) or 'nothing'}")
    for line in wrong:
        print(f"tidy self-test: {line}")
    total = sum(map(len, BAD.values()))
    print(f"tidy self-test: {total} bad examples, {len(wrong)} wrong")
    return 1 if wrong else 0
