#include "app/components.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "app/licenses_command.h"

namespace chasqui {
namespace {

std::string content(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::set<std::string> words(std::string_view text) {
  std::istringstream in{std::string(text)};
  return {std::istream_iterator<std::string>(in), {}};
}

// Of all components: what the build and the documentation call them.
std::set<std::string> known() {
  std::set<std::string> out;
  for (const Component& component : components()) out.merge(words(component.found_as));
  return out;
}

std::vector<std::string> found(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> out;
  for (std::sregex_iterator each(text.begin(), text.end(), pattern), end; each != end; ++each)
    out.push_back((*each)[1]);
  return out;
}

// The libraries that the linker gets for the server, in a line of ninja's.
std::vector<std::string> linked_libraries() {
  const std::string ninja = content(CHASQUI_BINARY_DIR "/build.ninja");
  const std::size_t rule = ninja.find("\nbuild bin/chasqui: ");
  const std::size_t line = ninja.find("LINK_LIBRARIES = ", rule);
  if (rule == std::string::npos || line == std::string::npos) return {};
  return found(ninja.substr(line, ninja.find('\n', line) - line),
               std::regex(R"([/ ](lib[\w+-]+|-l\w+)(?:\.a|\.so)?(?= |$))"));
}

TEST(Components, HaveEveryLibraryThatTheServerIsLinkedWith) {
  const std::vector<std::string> libraries = linked_libraries();
  if (libraries.empty()) GTEST_SKIP() << "the build folder is not ninja's";
  const std::set<std::string> parts = known();
  // Chasqui's own, and of the C library, which is never in the package.
  const std::regex own("libchasqui_.*|-ldl|-lpthread|-lm");
  for (const std::string& library : libraries) {
    EXPECT_TRUE(std::regex_match(library, own) || parts.contains(library)) << library << " is in no row";
  }
  EXPECT_TRUE(std::ranges::find(libraries, "libllama-common") != libraries.end()) << "the line was not understood";
}

TEST(Components, HaveEveryPackageOfThePage) {
  const std::string packages = content(CHASQUI_SOURCE_DIR "/page/package.json");
  const std::size_t from = packages.find("\"dependencies\"");
  ASSERT_NE(from, std::string::npos);
  const std::string list = packages.substr(from, packages.find('}', from) - from);
  std::size_t bundled = 0;
  for (const std::string& name : found(list, std::regex(R"re("([^"]+)": "\d)re"))) {
    ++bundled;
    EXPECT_TRUE(known().contains(name)) << name;
  }
  const auto pages = std::ranges::count(components(), Held::page, &Component::held);
  EXPECT_EQ(static_cast<std::size_t>(pages), bundled);
}

TEST(Components, HaveEveryDebianPackageOfTheDocumentation) {
  const std::string page = content(CHASQUI_SOURCE_DIR "/docs/dependencies.md");
  const std::size_t from = page.find("## Debian packages");
  ASSERT_NE(from, std::string::npos);
  const std::string table = page.substr(from, page.find("\n## ", from) - from);
  const std::set<std::string> tools = {"package", "libgtest-dev", "ccache"};  // not in the binary
  std::size_t rows = 0;
  for (const std::string& name : found(table, std::regex(R"(\n\| ([\w.+-]+) \|)"))) {
    ++rows;
    EXPECT_TRUE(tools.contains(name) || known().contains(name)) << name;
  }
  EXPECT_GE(rows, 12u);
  const std::string setup = content(CHASQUI_SOURCE_DIR "/tools/setup.sh");
  const std::size_t list = setup.find("build_packages=(");
  ASSERT_NE(list, std::string::npos);
  const std::set<std::string> of_tests = {"libgtest-dev", "libbenchmark-dev"};
  for (const std::string& name : words(setup.substr(list, setup.find(')', list) - list))) {
    EXPECT_TRUE(!name.ends_with("-dev") || of_tests.contains(name) || known().contains(name)) << name;
  }
}

TEST(Components, EachHasItsLicenceAndItsText) {
  const std::set<std::string> ids = {"MIT",
                                     "MIT-0",
                                     "BSL-1.0",
                                     "Apache-2.0",
                                     "Zlib",
                                     "BSD-2-Clause",
                                     "BSD-3-Clause",
                                     "ISC",
                                     "curl",
                                     "X11-distribute-modifications-variant",
                                     "Beerware",
                                     "MPL-2.0",
                                     "GPL-3.0-or-later",
                                     "GCC-exception-3.1"};
  const std::set<std::string> operators = {"AND", "OR", "WITH"};
  for (const Component& component : components()) {
    for (const std::string& word : words(component.license)) {
      EXPECT_TRUE(ids.contains(word) || operators.contains(word)) << component.name << ": " << word;
    }
    EXPECT_GT(component.text.size(), 800u) << component.name;
    EXPECT_NE(component.text.find("opyright"), std::string_view::npos) << component.name;
    EXPECT_FALSE(component.purpose.empty() || component.supplier.empty() || component.url.empty()) << component.name;
    const bool in_source = component.held == Held::compiled && component.found_as.starts_with("ggml-cpu/");
    EXPECT_TRUE(in_source || !component.version.empty()) << component.name << ": the build found no version";
  }
}

// The texts are copies: those of the sources that this machine has must be the same.
TEST(Components, TextsAreThoseOfTheSources) {
  const std::filesystem::path llama =
      std::filesystem::path(CHASQUI_LLAMA_SERVER_README).parent_path().parent_path().parent_path();
  const std::filesystem::path modules = CHASQUI_SOURCE_DIR "/page/node_modules";
  const std::pair<std::string_view, std::filesystem::path> sources[] = {
      {"llama.cpp", llama / "LICENSE"},
      {"nlohmann/json", llama / "licenses/LICENSE-jsonhpp"},
      {"marked", modules / "marked/LICENSE"},
      {"DOMPurify", modules / "dompurify/LICENSE"},
      {"highlight.js", modules / "highlight.js/LICENSE"},
      {"KaTeX", modules / "katex/LICENSE"},
      {"Chasqui", CHASQUI_SOURCE_DIR "/LICENSE"},
  };
  for (const auto& [name, file] : sources) {
    if (!std::filesystem::exists(file)) continue;
    const auto component = std::ranges::find(components(), name, &Component::name);
    ASSERT_NE(component, components().end()) << name;
    EXPECT_EQ(component->text, content(file)) << name;
  }
}

// The build of PDF.js that the page has holds parts of core-js, whose licence is not in its package.
TEST(Components, TheTextOfPdfJsIsItsOwnAndThatOfCoreJs) {
  const auto component = std::ranges::find(components(), "PDF.js", &Component::name);
  ASSERT_NE(component, components().end());
  EXPECT_NE(component->text.find("Denis Pushkarev"), std::string_view::npos);
  const std::string own = content(CHASQUI_SOURCE_DIR "/page/node_modules/pdfjs-dist/LICENSE");
  EXPECT_TRUE(component->text.starts_with(own));  // also where the packages of the page are not installed
}

TEST(Licenses, DocumentHasEachPartWithItsText) {
  const std::string document = licenses_document();
  for (const Component& component : components()) {
    EXPECT_NE(document.find(component.name), std::string::npos) << component.name;
    EXPECT_NE(document.find(component.text), std::string::npos) << component.name;
  }
  EXPECT_LT(document.size(), 150'000u);
}

}  // namespace
}  // namespace chasqui
