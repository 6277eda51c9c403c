#include "app/components.h"

#include <array>

#include <chasqui_licenses.h>
#include <chasqui_versions.h>

namespace chasqui {
namespace {

const std::array kComponents = {
    Component{"Chasqui", CHASQUI_VERSION, "MIT", "the server, its commands, its page and the demo model",
              "Organization: The Chasqui developers", "NOASSERTION", "", "", Held::own, license_text::chasqui()},
    Component{"llama.cpp", CHASQUI_VERSION_LLAMA, "MIT",
              "models, tokenizers, chat templates, projectors, and ggml's kernels", "Organization: The ggml authors",
              "https://github.com/ggml-org/llama.cpp", "pkg:github/ggml-org/llama.cpp",
              "libllama-common libllama-common-base libllama libggml libggml-cpu libggml-rpc libggml-base",
              Held::linked, license_text::llama_cpp()},
    Component{"llamafile", "", "MIT", "matrix multiplication in ggml's CPU backend (sgemm)",
              "Organization: Mozilla Foundation", "https://github.com/mozilla-ai/llamafile", "", "ggml-cpu/llamafile",
              Held::compiled, license_text::llamafile()},
    Component{"YaRN", "", "MIT", "long contexts in ggml's CPU backend (rope)", "Organization: YaRN's authors",
              "https://github.com/jquesnelle/yarn", "", "ggml-cpu/ops.cpp", Held::compiled, license_text::yarn()},
    Component{"nlohmann/json", CHASQUI_VERSION_NLOHMANN_JSON, "MIT", "JSON inside llama-common",
              "Person: Niels Lohmann", "https://github.com/nlohmann/json", "pkg:github/nlohmann/json",
              "vendor/nlohmann", Held::compiled, license_text::nlohmann_json()},
    Component{"stb_image", CHASQUI_VERSION_STB_IMAGE, "MIT", "decoding pictures that clients send",
              "Person: Sean Barrett", "https://github.com/nothings/stb", "", "vendor/stb", Held::compiled,
              license_text::stb_image()},
    Component{"miniaudio", CHASQUI_VERSION_MINIAUDIO, "MIT-0", "decoding sounds that clients send",
              "Person: David Reid", "https://miniaud.io", "pkg:github/mackron/miniaudio", "vendor/miniaudio",
              Held::compiled, license_text::miniaudio()},
    Component{"Boost", CHASQUI_VERSION_BOOST, "BSL-1.0", "sockets and coroutines (Asio), parsing JSON (Boost.JSON)",
              "Organization: Boost", "https://www.boost.org", "pkg:github/boostorg/boost",
              "libboost1.81-dev libboost-json1.81-dev libboost_json libboost_container", Held::linked,
              license_text::boost()},
    Component{"llhttp", CHASQUI_VERSION_LLHTTP, "MIT", "parsing HTTP/1.1", "Person: Fedor Indutny",
              "https://github.com/nodejs/llhttp", "pkg:github/nodejs/llhttp", "node-llhttp", Held::compiled,
              license_text::llhttp()},
    Component{"OpenSSL", CHASQUI_VERSION_OPENSSL, "Apache-2.0", "TLS, SHA-256", "Organization: OpenSSL Project",
              "https://www.openssl.org", "pkg:github/openssl/openssl", "libssl-dev libssl libcrypto", Held::linked,
              license_text::openssl()},
    Component{"zlib", CHASQUI_VERSION_ZLIB, "Zlib", "answers in gzip", "Person: Jean-loup Gailly and Mark Adler",
              "https://zlib.net", "pkg:github/madler/zlib", "zlib1g-dev libz", Held::linked, license_text::zlib()},
    Component{"xxHash", CHASQUI_VERSION_XXHASH, "BSD-2-Clause", "checksums of files", "Person: Yann Collet",
              "https://github.com/Cyan4973/xxHash", "pkg:github/Cyan4973/xxHash", "libxxhash-dev", Held::compiled,
              license_text::xxhash()},
    Component{"CLI11", CHASQUI_VERSION_CLI11, "BSD-3-Clause", "the command line", "Person: Henry Schreiner",
              "https://github.com/CLIUtils/CLI11", "pkg:github/CLIUtils/CLI11", "libcli11-dev", Held::compiled,
              license_text::cli11()},
    Component{"toml++", CHASQUI_VERSION_TOMLPLUSPLUS, "MIT", "the file of settings", "Person: Mark Gillard",
              "https://github.com/marzer/tomlplusplus", "pkg:github/marzer/tomlplusplus", "libtomlplusplus-dev",
              Held::compiled, license_text::tomlplusplus()},
    Component{"libedit", CHASQUI_VERSION_LIBEDIT, "BSD-3-Clause", "the line editor of chasqui chat",
              "Person: Jess Thrysoee", "https://www.thrysoee.dk/editline", "", "libedit-dev libedit", Held::linked,
              license_text::libedit()},
    Component{"ncurses", CHASQUI_VERSION_NCURSES, "X11-distribute-modifications-variant",
              "what terminals can do, for libedit (libtinfo)", "Person: Thomas E. Dickey",
              "https://invisible-island.net/ncurses", "", "libtinfo", Held::linked, license_text::ncurses()},
    Component{"libbsd", CHASQUI_VERSION_LIBBSD, "BSD-3-Clause AND BSD-2-Clause AND ISC AND MIT",
              "functions of BSD's C library, for libedit", "Person: Guillem Jover", "https://libbsd.freedesktop.org",
              "", "libbsd", Held::linked, license_text::libbsd()},
    Component{"libmd", CHASQUI_VERSION_LIBMD, "BSD-3-Clause AND BSD-2-Clause AND ISC AND Beerware",
              "message digests, for libbsd", "Person: Guillem Jover", "https://www.hadrons.org/software/libmd", "",
              "libmd", Held::linked, license_text::libmd()},
    Component{"GCC runtime libraries", CHASQUI_VERSION_GCC, "GPL-3.0-or-later WITH GCC-exception-3.1",
              "the C++ standard library (libstdc++), libgcc", "Organization: Free Software Foundation",
              "https://gcc.gnu.org", "", "libstdc++ libgcc libgcc_s", Held::linked, license_text::gcc_runtime()},
    Component{"marked", CHASQUI_VERSION_MARKED, "MIT", "Markdown in the page", "Person: Christopher Jeffrey",
              "https://github.com/markedjs/marked", "pkg:npm/marked", "marked", Held::page, license_text::marked()},
    Component{"DOMPurify", CHASQUI_VERSION_DOMPURIFY, "MPL-2.0 OR Apache-2.0",
              "removing active content from HTML in the page", "Organization: Cure53",
              "https://github.com/cure53/DOMPurify", "pkg:npm/dompurify", "dompurify", Held::page,
              license_text::dompurify()},
    Component{"highlight.js", CHASQUI_VERSION_HIGHLIGHT_JS, "BSD-3-Clause", "colours of code in the page",
              "Person: Ivan Sagalaev", "https://github.com/highlightjs/highlight.js", "pkg:npm/highlight.js",
              "highlight.js", Held::page, license_text::highlight_js()},
    Component{"KaTeX", CHASQUI_VERSION_KATEX, "MIT", "formulas in the page, as MathML; no fonts",
              "Organization: Khan Academy", "https://github.com/KaTeX/KaTeX", "pkg:npm/katex", "katex", Held::page,
              license_text::katex()},
    Component{"PDF.js", CHASQUI_VERSION_PDFJS_DIST, "Apache-2.0 AND MIT",
              "text of PDFs in the page, with parts of core-js for older browsers", "Organization: Mozilla Foundation",
              "https://github.com/mozilla/pdf.js", "pkg:npm/pdfjs-dist", "pdfjs-dist", Held::page,
              license_text::pdf_js()},
    Component{"libcurl", CHASQUI_VERSION_CURL, "curl", "chasqui pull, --media-url-hosts; the machine's own is loaded",
              "Person: Daniel Stenberg", "https://curl.se", "pkg:github/curl/curl", "libcurl4-openssl-dev",
              Held::loaded, license_text::curl()},
};

}  // namespace

std::span<const Component> components() { return kComponents; }

}  // namespace chasqui
