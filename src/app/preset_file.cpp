#include "app/preset_file.h"

#include <algorithm>

#include "base/ascii.h"

namespace chasqui {
namespace {

constexpr std::string_view kBlank = " \t";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // editors of Windows begin a file with it

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  return text.substr(0, text.find_last_not_of(kBlank) + 1);
}

// Without the comment at its end. One that begins in a word is part of the word.
std::string_view without_comment(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool begins = line[i] == ';' || line[i] == '#';
    if (begins && (i == 0 || kBlank.find(line[i - 1]) != std::string_view::npos)) return line.substr(0, i);
  }
  return line;
}

bool is_key(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return is_ascii_word_or("_-.", c); });
}

void put(PresetSection& section, std::string_view key, std::string_view value, int line) {
  std::erase_if(section.items, [key](const PresetItem& item) { return item.key == key; });
  section.items.push_back({std::string(key), std::string(value), line});
}

class PresetReader {
 public:
  Result<void> line(std::string_view line) {
    ++number_;
    line = trimmed(without_comment(line));
    if (line.empty()) return {};
    if (line.front() == '[') return header(line);
    const std::size_t equals = line.find('=');
    const std::string_view key = trimmed(line.substr(0, equals));
    if (equals == std::string_view::npos || !is_key(key)) return wrong("is neither [SECTION] nor KEY = VALUE");
    if (key == "version") return {};
    if (section_ == nullptr) return wrong("stands before the first [SECTION]");
    put(*section_, key, trimmed(line.substr(equals + 1)), number_);
    return {};
  }

  Preset take() { return std::move(preset_); }

 private:
  Result<void> header(std::string_view line) {
    const std::string_view name = trimmed(line.substr(1, line.size() - 2));
    if (line.back() != ']' || name.empty() || name.find(']') != std::string_view::npos) {
      return wrong("begins like a section and is none: [SECTION]");
    }
    const auto same = [name](const PresetSection& section) { return section.name == name; };
    if (std::ranges::any_of(preset_.sections, same)) return wrong("begins a section that there is already");
    section_ = name == "*" ? &preset_.all : &preset_.sections.emplace_back(PresetSection{std::string(name), {}});
    return {};
  }

  Error wrong(const std::string& what) const {
    return invalid_field("", "line " + std::to_string(number_) + ' ' + what);
  }

  Preset preset_;
  PresetSection* section_ = nullptr;  // into preset_, until the next one begins
  int number_ = 0;
};

}  // namespace

Result<Preset> read_preset(std::string_view text) {
  PresetReader reader;
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
    if (auto read = reader.line(text.substr(0, end)); !read) return read.error();
    const bool both = text.substr(end).starts_with("\r\n");
    text.remove_prefix(std::min(end + (both ? 2 : 1), text.size()));
  }
  return reader.take();
}

}  // namespace chasqui
