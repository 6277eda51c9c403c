#include "bench/load_spec.h"

#include <array>
#include <charconv>
#include <cmath>

namespace chasqui::bench {
namespace {

constexpr std::int64_t kRequestsDefault = 100;

template <class Number>
bool read_number(std::string_view text, Number low, Number high, Number& out) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  if (!(value >= low && value <= high)) return false;
  out = value;
  return true;
}

bool read_span(std::string_view text, std::int32_t low, std::int32_t high, Span& out) {
  const std::size_t dash = text.find('-');
  Span span;
  if (!read_number(text.substr(0, dash), low, high, span.low)) return false;
  span.high = span.low;
  if (dash != std::string_view::npos && !read_number(text.substr(dash + 1), span.low, high, span.high)) return false;
  out = span;
  return true;
}

bool read_mix(std::string_view text, std::vector<Share>& out) {
  std::vector<Share> mix;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('/', at), text.size());
    const std::string_view part = text.substr(at, end - at);
    const std::size_t star = part.find('*');
    Share share;
    if (!read_span(part.substr(0, star), 1, 1'000'000, share.tokens)) return false;
    if (star != std::string_view::npos && !read_number(part.substr(star + 1), 1, 100'000, share.weight)) return false;
    mix.push_back(share);
    at = end + 1;
  }
  out = std::move(mix);
  return true;
}

bool read_flag(std::string_view text, bool& out) {
  if (text != "0" && text != "1") return false;
  out = text == "1";
  return true;
}

template <class Value>
bool read_optional(std::string_view text, Value low, Value high, std::optional<Value>& out) {
  Value value{};
  if (!read_number(text, low, high, value)) return false;
  out = value;
  return true;
}

bool read_text(std::string_view text, std::string& out) {
  out = text;
  return !text.empty();
}

// What an option of a group is called, how it is read, and what is allowed.
struct Option {
  std::string_view name;
  bool (*read)(std::string_view, LoadSpec&);
  std::string_view allowed;
};

using Text = std::string_view;
constexpr std::array<Option, 15> kOptions = {{
    {"name", [](Text t, LoadSpec& s) { return read_text(t, s.name); }, "a word"},
    {"clients", [](Text t, LoadSpec& s) { return read_number(t, 1, 100'000, s.clients); }, "1 to 100000"},
    {"rate", [](Text t, LoadSpec& s) { return read_number(t, 0.001, 1e6, s.rate); },
     "requests per second, 0.001 to 1e6"},
    {"requests", [](Text t, LoadSpec& s) { return read_optional<std::int64_t>(t, 1, 1'000'000'000, s.requests); },
     "1 to 1000000000"},
    {"duration", [](Text t, LoadSpec& s) { return read_optional(t, 0.001, 1e6, s.duration_s); },
     "seconds, 0.001 to 1e6"},
    {"prompt-words", [](Text t, LoadSpec& s) { return read_span(t, 1, 1'000'000, s.prompt_words); },
     "1 to 1000000, or a range such as 10-500"},
    {"shared-prefix-words", [](Text t, LoadSpec& s) { return read_number(t, 0, 1'000'000, s.shared_prefix_words); },
     "0 to 1000000"},
    {"max-tokens", [](Text t, LoadSpec& s) { return read_mix(t, s.max_tokens); },
     "1 to 1000000, a range such as 10-50, or weighted ones such as 12*60/40*20"},
    {"priority", [](Text t, LoadSpec& s) { return is_priority(t) && read_text(t, s.priority); },
     "interactive, standard or background"},
    {"key", [](Text t, LoadSpec& s) { return read_text(t, s.key); }, "an API key"},
    {"stream", [](Text t, LoadSpec& s) { return read_flag(t, s.stream); }, "0 or 1"},
    {"start", [](Text t, LoadSpec& s) { return read_number(t, 0.0, 1e6, s.start_s); }, "seconds, 0 to 1e6"},
    {"abandon", [](Text t, LoadSpec& s) { return read_number(t, 0.0, 1.0, s.abandon); }, "a probability, 0 to 1"},
    {"retry", [](Text t, LoadSpec& s) { return read_flag(t, s.retry); }, "0 or 1"},
    {"think", [](Text t, LoadSpec& s) { return read_number(t, 0.0, 1e6, s.think_s); }, "seconds, 0 to 1e6"},
}};

Error bad(std::string message) { return invalid_field("load", std::move(message)); }

Result<void> read_option(std::string_view part, LoadSpec& spec) {
  const std::size_t equals = part.find('=');
  const std::string_view name = part.substr(0, equals);
  std::string names;
  for (const Option& option : kOptions) {
    if (option.name == name) {
      if (equals != std::string_view::npos && option.read(part.substr(equals + 1), spec)) return {};
      return bad("--load: " + std::string(name) + " must be " + std::string(option.allowed) + ", not \"" +
                 std::string(equals == std::string_view::npos ? "" : part.substr(equals + 1)) + "\"");
    }
    names += (names.empty() ? "" : ", ") + std::string(option.name);
  }
  return bad("--load: there is no option \"" + std::string(name) + "\"; there are " + names);
}

}  // namespace

bool is_priority(std::string_view word) { return word == "interactive" || word == "standard" || word == "background"; }

Result<LoadSpec> parse_load(std::string_view text, std::size_t number) {
  LoadSpec spec;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    if (auto read = read_option(text.substr(at, end - at), spec); !read) return read.error();
    at = end + 1;
  }
  if (spec.name.empty()) spec.name = "load" + std::to_string(number);
  if (spec.clients > 0 && spec.rate > 0)
    return bad("--load: clients (closed loop) and rate (open loop) exclude each other");
  if (spec.clients == 0 && !(spec.rate > 0)) spec.clients = 1;
  if (spec.rate > 0 && spec.think_s > 0)
    return bad("--load: think belongs to a closed loop, with clients and not with rate");
  if (spec.shared_prefix_words > spec.prompt_words.low) {
    return bad("--load: shared-prefix-words must be at most prompt-words, " + std::to_string(spec.prompt_words.low));
  }
  if (!spec.requests && !spec.duration_s) spec.requests = kRequestsDefault;
  return spec;
}

}  // namespace chasqui::bench
