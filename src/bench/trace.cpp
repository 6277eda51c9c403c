#include "bench/trace.h"

#include <boost/json.hpp>

#include "bench/load_spec.h"

namespace chasqui::bench {
namespace {

namespace json = boost::json;

constexpr std::int32_t kMost = 1'000'000;

bool take_whole(const json::object& line, std::string_view key, std::int32_t& out) {
  const json::value* value = line.if_contains(key);
  if (value == nullptr || !value->is_int64()) return false;
  if (value->get_int64() < 1 || value->get_int64() > kMost) return false;
  out = static_cast<std::int32_t>(value->get_int64());
  return true;
}

// Empty when the field is missing. False when it is there and no text.
bool take_text(const json::object& line, std::string_view key, std::string& out) {
  const json::value* value = line.if_contains(key);
  if (value == nullptr) return true;
  if (!value->is_string() || value->get_string().empty()) return false;
  out = std::string_view(value->get_string());
  return true;
}

// What is wrong with the line; empty when nothing is.
std::string read_entry(const json::object& line, TraceEntry& entry) {
  const json::value* at = line.if_contains("at_ms");
  if (at == nullptr || !at->is_number()) return "at_ms must be a number of milliseconds";
  entry.at_s = at->to_number<double>() / 1e3;
  if (!(entry.at_s >= 0 && entry.at_s <= 1e6)) return "at_ms must be 0 to 1e9";
  if (!take_whole(line, "max_tokens", entry.max_tokens)) return "max_tokens must be 1 to 1000000";
  if (!take_text(line, "prompt", entry.prompt)) return "prompt must be a text that is not empty";
  if (entry.prompt.empty() && !take_whole(line, "prompt_words", entry.prompt_words)) {
    return "prompt_words must be 1 to 1000000, unless there is a prompt";
  }
  if (!take_text(line, "class", entry.priority) || !(entry.priority.empty() || is_priority(entry.priority))) {
    return "class must be interactive, standard or background";
  }
  if (!take_text(line, "key", entry.key)) return "key must be a text that is not empty";
  return {};
}

}  // namespace

Result<std::vector<TraceEntry>> parse_trace(std::string_view text) {
  std::vector<TraceEntry> entries;
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    boost::system::error_code error;
    const json::value value = json::parse(line, error);
    TraceEntry entry;
    std::string wrong = "must be a JSON object";
    if (!error && value.is_object()) wrong = read_entry(value.get_object(), entry);
    if (wrong.empty() && !entries.empty() && entry.at_s < entries.back().at_s) wrong = "at_ms must not go back";
    if (!wrong.empty()) return invalid_field("trace", "--trace: line " + std::to_string(number) + ": " + wrong);
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) return invalid_field("trace", "--trace: the file has no requests");
  return entries;
}

}  // namespace chasqui::bench
