// mkmodel NAME OUT.gguf: a model of a real shape with random weights, in seconds; see shapes.cpp.
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "gguf_file.h"

#include "adapter.h"
#include "check.h"
#include "projector.h"
#include "shapes.h"

namespace {

constexpr const char* kUsage =
    "usage: mkmodel NAME OUT.gguf [--seed N] [--vocabularies DIR]\n"
    "       mkmodel --all DIR [--seed N] [--vocabularies DIR]    those that DIR does not have yet\n"
    "       mkmodel --small DIR [--seed N] [--vocabularies DIR]  of these, those that the tests need\n"
    "       mkmodel --adapter MODEL.gguf OUT.gguf [--seed N]     a LoRA adapter with random weights for that model\n"
    "       mkmodel --list\n"
    "       mkmodel --check FILE.gguf [--threads N]\n";

struct Arguments {
  std::vector<std::string> words;
  bool list = false;
  bool all = false;
  bool small = false;  // of all, only these
  bool check = false;
  bool adapter = false;
  std::uint64_t seed = 1;
  int threads = 0;
  std::string vocabularies = CHASQUI_VOCABULARIES;
};

template <class Number>
bool read_number(const char* text, Number& number) {
  const char* end = text + std::strlen(text);
  const auto result = std::from_chars(text, end, number);
  return result.ec == std::errc() && result.ptr == end;
}

bool read_arguments(int count, char** values, Arguments& arguments) {
  for (int i = 1; i < count; ++i) {
    const std::string word = values[i];
    const char* next = i + 1 < count ? values[i + 1] : nullptr;
    if (word == "--list") {
      arguments.list = true;
    } else if (word == "--all") {
      arguments.all = true;
    } else if (word == "--small") {
      arguments.all = arguments.small = true;
    } else if (word == "--check") {
      arguments.check = true;
    } else if (word == "--adapter") {
      arguments.adapter = true;
    } else if (word == "--seed" && next != nullptr && read_number(next, arguments.seed)) {
      ++i;
    } else if (word == "--threads" && next != nullptr && read_number(next, arguments.threads)) {
      ++i;
    } else if (word == "--vocabularies" && next != nullptr) {
      arguments.vocabularies = values[++i];
    } else if (word.starts_with("--")) {
      return false;
    } else {
      arguments.words.push_back(word);
    }
  }
  return arguments.list || arguments.words.size() == (arguments.check || arguments.all ? 1 : 2);
}

int list() {
  for (const mkmodel::Shape& shape : mkmodel::shapes()) {
    std::printf("%-18s %s (%s)\n", shape.name.c_str(), shape.about.c_str(), shape.architecture.c_str());
  }
  for (const mkmodel::Projector& projector : mkmodel::projectors()) {
    std::printf("%-18s %s\n", projector.name.c_str(), projector.about.c_str());
  }
  return 0;
}

void make(const mkmodel::Shape& shape, const Arguments& arguments, const std::string& path) {
  const auto start = std::chrono::steady_clock::now();
  const mkmodel::Written written = mkmodel::write_model(shape, arguments.vocabularies, path, arguments.seed);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("%s: %.1f M parameters, %.1f MB, %.1f s\n", path.c_str(), static_cast<double>(written.parameters) / 1e6,
              static_cast<double>(written.bytes) / 1e6, took.count());
}

void make(const mkmodel::Projector& projector, const Arguments& arguments, const std::string& path) {
  const mkmodel::Written written = mkmodel::write_projector(projector, path, arguments.seed);
  std::printf("%s: %.2f M parameters\n", path.c_str(), static_cast<double>(written.parameters) / 1e6);
}

int make_one(const Arguments& arguments) {
  if (const mkmodel::Projector* projector = mkmodel::find_projector(arguments.words[0])) {
    make(*projector, arguments, arguments.words[1]);
    return 0;
  }
  const mkmodel::Shape* shape = mkmodel::find_shape(arguments.words[0]);
  if (shape == nullptr) {
    std::fprintf(stderr, "mkmodel: no model %s; --list shows all\n", arguments.words[0].c_str());
    return 2;
  }
  make(*shape, arguments, arguments.words[1]);
  return 0;
}

int make_adapter(const Arguments& arguments) {
  const mkmodel::Written written = mkmodel::write_adapter(arguments.words[0], arguments.words[1], arguments.seed);
  std::printf("%s: %.2f M parameters\n", arguments.words[1].c_str(), static_cast<double>(written.parameters) / 1e6);
  return 0;
}

int make_missing(const Arguments& arguments) {
  std::filesystem::create_directories(arguments.words[0]);
  for (const mkmodel::Shape& shape : mkmodel::shapes()) {
    const std::string path = arguments.words[0] + "/" + shape.name + ".gguf";
    if (shape.large || (arguments.small && !shape.small)) continue;
    if (!std::filesystem::exists(path)) make(shape, arguments, path);
  }
  // In a folder of their own, so that the models beside them are served without.
  const std::string folder = arguments.words[0] + "/projectors";
  std::filesystem::create_directories(folder);
  for (const mkmodel::Projector& projector : mkmodel::projectors()) {
    const std::string path = folder + "/" + projector.name + ".gguf";
    if (!projector.large && !std::filesystem::exists(path)) make(projector, arguments, path);
  }
  return 0;
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments;
  if (!read_arguments(count, values, arguments)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  try {
    if (arguments.list) return list();
    if (arguments.adapter) return make_adapter(arguments);
    if (arguments.check) return mkmodel::check_model(arguments.words[0], arguments.threads) ? 0 : 1;
    return arguments.all ? make_missing(arguments) : make_one(arguments);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "mkmodel: %s\n", e.what());
    return 1;
  }
}
