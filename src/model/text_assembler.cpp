// Invariants, after every call that did not stop:
//   1  pending_ is empty or the beginning of one UTF-8 character.
//   2  held_ is the longest end of the output that some stop string begins with.
// Both together make the result independent of how the bytes were split into pushes.
#include "model/text_assembler.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"

namespace chasqui {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// fallback[n]: the longest proper beginning of text[0 … n] that is also its end.
std::vector<std::uint32_t> fallbacks(std::string_view text) {
  std::vector<std::uint32_t> result(text.size(), 0);
  std::uint32_t length = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    while (length > 0 && text[i] != text[length]) length = result[length - 1];
    if (text[i] == text[length]) ++length;
    result[i] = length;
  }
  return result;
}

// Length of the longest beginning of an invalid character: the bytes that one U+FFFD stands for.
std::size_t invalid_length(std::string_view text) {
  std::size_t length = 1;
  while (length < text.size() && utf8_incomplete(text.substr(0, length + 1))) ++length;
  return length;
}

}  // namespace

TextAssembler::TextAssembler(const Tokenizer& tokenizer, const std::vector<std::string>& stops, bool special_pieces)
    : tokenizer_(tokenizer), special_pieces_(special_pieces) {
  stops_.reserve(stops.size());
  for (const std::string& stop : stops) {
    CHECK(!stop.empty());
    stops_.push_back({stop, fallbacks(stop), 0});
  }
}

const std::string* TextAssembler::push(Token token, std::string& out) {
  return push_bytes(special_pieces_ ? tokenizer_.special_piece(token) : tokenizer_.piece(token), out);
}

const std::string* TextAssembler::push_bytes(std::string_view bytes, std::string& out) {
  DCHECK(!stopped_);
  std::string joined;
  if (!pending_.empty()) {
    joined = std::exchange(pending_, {});
    joined += bytes;
    bytes = joined;
  }
  while (!bytes.empty()) {
    std::size_t length = utf8_character(bytes);
    const bool valid = length > 0;
    if (!valid && utf8_incomplete(bytes)) {
      pending_ = bytes;
      break;
    }
    if (!valid) length = invalid_length(bytes);
    if (const std::string* stop = append(valid ? bytes.substr(0, length) : kReplacement, out)) return stop;
    bytes.remove_prefix(length);
  }
  return nullptr;
}

const std::string* TextAssembler::flush(std::string& out) {
  if (stopped_) return nullptr;
  if (!pending_.empty()) {
    pending_.clear();
    if (const std::string* stop = append(kReplacement, out)) return stop;
  }
  out += held_;
  held_.clear();
  return nullptr;
}

void TextAssembler::finish(std::string& out) {
  pending_.clear();
  flush(out);
}

void TextAssembler::begin_after(std::span<const Token> tokens) {
  constexpr std::size_t kIncompleteMax = 3;
  std::string end;
  while (!tokens.empty() && tokens.back() >= 0 && end.size() < kIncompleteMax) {
    end.insert(0, special_pieces_ ? tokenizer_.special_piece(tokens.back()) : tokenizer_.piece(tokens.back()));
    tokens = tokens.first(tokens.size() - 1);
  }
  for (std::size_t length = std::min(end.size(), kIncompleteMax); length > 0 && pending_.empty(); --length) {
    const std::string_view beginning = std::string_view(end).substr(end.size() - length);
    if (utf8_incomplete(beginning)) pending_ = beginning;
  }
}

const std::string* TextAssembler::append(std::string_view character, std::string& out) {
  if (stops_.empty()) {
    out += character;
    return nullptr;
  }
  held_ += character;
  const Stop* complete = nullptr;
  std::size_t needed = 0;
  for (Stop& stop : stops_) {
    for (char byte : character) {
      if (stop.matched == stop.text.size()) stop.matched = stop.fallback.back();
      while (stop.matched > 0 && byte != stop.text[stop.matched]) stop.matched = stop.fallback[stop.matched - 1];
      if (byte == stop.text[stop.matched]) ++stop.matched;
    }
    needed = std::max(needed, stop.matched);
    const bool matches = stop.matched == stop.text.size();
    if (matches && (complete == nullptr || stop.text.size() > complete->text.size())) complete = &stop;
  }
  if (complete != nullptr) {
    out.append(held_, 0, held_.size() - complete->text.size());
    held_.clear();
    stopped_ = true;
    return &complete->text;
  }
  const std::size_t safe = held_.size() - needed;
  out.append(held_, 0, safe);
  held_.erase(0, safe);
  return nullptr;
}

}  // namespace chasqui
