#include "bench/sse_scanner.h"

#include <algorithm>
#include <charconv>

namespace chasqui::bench {
namespace {

std::string_view without_spaces(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view() : text.substr(first);
}

// What follows `"key":`, or nothing.
std::string_view value_after(std::string_view json, std::string_view quoted_key) {
  for (std::size_t at = json.find(quoted_key); at != std::string_view::npos; at = json.find(quoted_key, at + 1)) {
    const std::string_view rest = without_spaces(json.substr(at + quoted_key.size()));
    if (rest.starts_with(':')) return without_spaces(rest.substr(1));
  }
  return {};
}

bool has_text(std::string_view json, std::string_view quoted_key) {
  const std::string_view value = value_after(json, quoted_key);
  return value.size() > 1 && value[0] == '"' && value[1] != '"';
}

void take_number(std::string_view json, std::string_view quoted_key, std::int64_t& out) {
  const std::string_view value = value_after(json, quoted_key);
  std::int64_t number = 0;
  if (std::from_chars(value.data(), value.data() + value.size(), number).ec == std::errc()) out = number;
}

bool carries_text(std::string_view json) {
  return has_text(json, "\"content\"") || has_text(json, "\"text\"") || has_text(json, "\"reasoning_content\"");
}

}  // namespace

void scan_usage(std::string_view json, Usage& usage) {
  take_number(json, "\"completion_tokens\"", usage.completion);
  take_number(json, "\"prompt_tokens\"", usage.prompt);
  take_number(json, "\"cached_tokens\"", usage.cached);
}

void SseScanner::feed(std::string_view bytes, std::vector<std::int32_t>& chunks) {
  while (!bytes.empty() && !failed_) {
    const std::size_t end = bytes.find('\n');
    if (end == std::string_view::npos) {
      kept_ += bytes;
      failed_ = kept_.size() > kLineMax;
      return;
    }
    if (kept_.empty()) {
      take_line(bytes.substr(0, end), chunks);
    } else {
      kept_ += bytes.substr(0, end);
      take_line(kept_, chunks);
      kept_.clear();
    }
    bytes.remove_prefix(end + 1);
  }
}

void SseScanner::take_line(std::string_view line, std::vector<std::int32_t>& chunks) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (!line.starts_with("data:")) {
    failed_ = failed_ || line == "event: error" || line == "event:error" || line.starts_with("error:");
    return;
  }
  const std::string_view json = without_spaces(line.substr(5));
  if (json.starts_with("[DONE]")) {
    done_ = true;
    return;
  }
  if (json.starts_with("{\"error\"")) {
    failed_ = true;
    return;
  }
  const bool text = carries_text(json);
  if (!text && json.find("\"usage\"") == std::string_view::npos) return;
  scan_usage(json, usage_);
  if (!text) return;
  // Some servers say with every chunk how many tokens there were so far.
  const std::int64_t said = usage_.completion - tokens_;
  const auto count = static_cast<std::int32_t>(std::clamp<std::int64_t>(said, 1, 1 << 20));
  chunks.push_back(count);
  tokens_ += count;
}

}  // namespace chasqui::bench
