#include "sim/trace.h"

#include <algorithm>
#include <cmath>
#include <istream>
#include <string_view>
#include <utility>

#include <boost/json.hpp>

#include "base/json_writer.h"

namespace chasqui {
namespace {

namespace json = boost::json;

constexpr std::size_t kLineMax = 64 * 1024;
constexpr std::size_t kRequestsMax = 10'000'000;
constexpr std::size_t kNamesMax = 100'000;
constexpr double kTimeMaxMs = 1e12;
constexpr double kTokensMax = 1 << 24;

// Everything that one line may hold, and what was wrong with it.
class LineReader {
 public:
  struct Names {
    std::vector<std::string>& tenants;
    std::vector<std::string>& prefixes;
    std::vector<std::string>& conversations;
  };
  LineReader(const json::object& object, Names names) : object_(object), names_(names) {}

  bool read(PlannedRequest& request) {
    double at_ms = 0;
    required("at_ms", at_ms, 0, kTimeMaxMs);
    request.at = std::chrono::nanoseconds(std::llround(at_ms * 1e6));
    count("prompt", request.prompt, 1, kTokensMax, true);
    count("output", request.output, 0, kTokensMax, true);
    count("max_tokens", request.max_tokens, 0, kTokensMax);
    count("prefix_tokens", request.prefix_tokens, 1, kTokensMax);
    number("weight", request.weight, 1e-6, 1e6);
    number("reads_per_s", request.reads_per_s, 0, 1e9);
    number("repeats", request.repeats, 0, 1);
    count("adapter", request.adapter, 0, PlannedRequest::kAdaptersMax);
    double timeout_ms = 0;
    if (number("timeout_ms", timeout_ms, 1, 86'400'000)) request.timeout_ms = static_cast<std::int64_t>(timeout_ms);
    read_leaving(request);
    read_class(request);
    read_name("tenant", names_.tenants, request.tenant);
    read_name("prefix", names_.prefixes, request.prefix);
    read_turn(request);
    if (request.prefix == 0 && request.prefix_tokens > 0) fail("prefix_tokens", "needs a prefix");
    if (request.prefix != 0 && request.prefix_tokens == 0) fail("prefix", "needs prefix_tokens");
    if (request.prefix_tokens > request.prompt) fail("prefix_tokens", "must not be more than prompt");
    if (request.max_tokens >= 0 && request.output > request.max_tokens) fail("output", "must not be over max_tokens");
    if (found_ < object_.size()) fail_unknown();
    return fault_.empty();
  }

  // field: message
  const std::string& fault() const { return fault_; }

 private:
  // The first fault of a line is the one that is told.
  void fail(std::string_view field, const std::string& message) {
    if (fault_.empty()) fault_ = std::string(field) + ": " + message;
  }

  void fail_unknown() {
    constexpr std::string_view kFields[] = {"at_ms",
                                            "prompt",
                                            "output",
                                            "max_tokens",
                                            "class",
                                            "tenant",
                                            "weight",
                                            "prefix",
                                            "prefix_tokens",
                                            "cancel_after_ms",
                                            "cancel_after_rows",
                                            "cancel_after_tokens",
                                            "timeout_ms",
                                            "reads_per_s",
                                            "repeats",
                                            "adapter",
                                            "conversation",
                                            "back",
                                            "calls",
                                            "think_ms"};
    for (const auto& field : object_) {
      const std::string_view key = field.key();
      if (std::find(std::begin(kFields), std::end(kFields), key) == std::end(kFields))
        fail(key, "is not a known field");
    }
  }

  const json::value* find(std::string_view field) {
    const json::value* value = object_.if_contains(field);
    if (value != nullptr) ++found_;
    return value;
  }

  bool number(std::string_view field, double& target, double low, double high) {
    const json::value* value = find(field);
    if (value == nullptr) return false;
    double number = NAN;
    if (value->is_int64()) number = static_cast<double>(value->get_int64());
    if (value->is_uint64()) number = static_cast<double>(value->get_uint64());
    if (value->is_double()) number = value->get_double();
    if (!(number >= low && number <= high)) {
      std::string range;
      append_json_number(range, low);
      range += " and ";
      append_json_number(range, high);
      fail(field, "must be a number between " + range);
      return false;
    }
    target = number;
    return true;
  }

  void required(std::string_view field, double& target, double low, double high) {
    if (!object_.contains(field)) fail(field, "is missing");
    number(field, target, low, high);
  }

  void count(std::string_view field, TokenCount& target, double low, double high, bool must = false) {
    double value = 0;
    if (must) {
      required(field, value, low, high);
    } else if (!number(field, value, low, high)) {
      return;
    }
    if (value != std::floor(value)) fail(field, "must be a whole number");
    target = static_cast<TokenCount>(value);
  }

  void read_leaving(PlannedRequest& request) {
    constexpr std::pair<std::string_view, Leaving> kWays[] = {{"cancel_after_ms", Leaving::after_ms},
                                                              {"cancel_after_rows", Leaving::after_rows},
                                                              {"cancel_after_tokens", Leaving::after_tokens}};
    for (const auto& [field, leaving] : kWays) {
      double after = 0;
      if (!number(field, after, 0, kTimeMaxMs)) continue;
      if (request.leaving != Leaving::never) fail(field, "only one way to leave");
      request.leaving = leaving;
      request.leaves_after = static_cast<std::int64_t>(after);
    }
  }

  void read_turn(PlannedRequest& request) {
    read_name("conversation", names_.conversations, request.conversation);
    double think_ms = 0;
    if (number("think_ms", think_ms, 0, kTimeMaxMs)) {
      request.think = std::chrono::nanoseconds(std::llround(think_ms * 1e6));
    }
    count("back", request.back, 0, kTokensMax);
    if (const json::value* calls = find("calls")) {
      if (!calls->is_bool()) fail("calls", "must be true or false");
      request.calls = calls->is_bool() && calls->get_bool();
    }
    for (const std::string_view field : {"think_ms", "back", "calls"}) {
      if (request.conversation == 0 && object_.contains(field)) fail(field, "needs a conversation");
    }
  }

  void read_class(PlannedRequest& request) {
    const json::value* value = find("class");
    if (value == nullptr) return;
    for (std::size_t i = 0; i < kServiceClasses; ++i) {
      const auto service_class = static_cast<ServiceClass>(i);
      if (value->is_string() && value->get_string() == name(service_class)) {
        request.service_class = service_class;
        return;
      }
    }
    fail("class", "must be interactive, standard or background");
  }

  void read_name(std::string_view field, std::vector<std::string>& names, std::uint32_t& target) {
    const json::value* value = find(field);
    std::string word;
    if (value != nullptr && value->is_string()) {
      word = value->get_string();
    } else if (value != nullptr) {
      fail(field, "must be a string");
    }
    // Few names, and mostly the one of the line before.
    const auto place = std::find(names.rbegin(), names.rend(), word);
    target = static_cast<std::uint32_t>(names.rend() - place - 1);
    if (place != names.rend()) return;
    target = static_cast<std::uint32_t>(names.size());
    names.push_back(word);
    if (names.size() > kNamesMax) fail(field, "has too many different values");
  }

  const json::object& object_;
  const Names names_;
  std::size_t found_ = 0;
  std::string fault_;
};

}  // namespace

Result<TraceWorkload> TraceWorkload::read(std::istream& in, const std::string& name) {
  TraceWorkload trace;
  std::string line;
  const auto fault = [&name](std::size_t number, const std::string& message) {
    return Error{ErrorCode::invalid_request, name + ':' + std::to_string(number) + ": " + message, ""};
  };
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (line.size() > kLineMax) return fault(number, "the line is too long");
    if (trace.requests_.size() == kRequestsMax) return fault(number, "too many requests");
    boost::system::error_code error;
    const json::value value = json::parse(line, error);
    if (error) return fault(number, "not JSON: " + error.message());
    if (!value.is_object()) return fault(number, "not a JSON object");
    LineReader reader(value.get_object(), {trace.tenants_, trace.prefixes_, trace.conversations_});
    if (!reader.read(trace.requests_.emplace_back())) return fault(number, reader.fault());
  }
  if (in.bad()) return fault(1, "cannot be read");
  if (trace.requests_.empty()) return fault(1, "no requests");
  const auto earlier = [](const PlannedRequest& a, const PlannedRequest& b) { return a.at < b.at; };
  std::stable_sort(trace.requests_.begin(), trace.requests_.end(), earlier);
  return trace;
}

bool TraceWorkload::next(PlannedRequest& request) {
  if (next_ == requests_.size()) return false;
  request = requests_[next_++];
  return true;
}

void append_trace_line(std::string& out, const PlannedRequest& request, const Workload& workload) {
  JsonWriter json(out);
  json.begin_object();
  json.field("at_ms", to_milliseconds(request.at));
  json.field("prompt", request.prompt);
  json.field("output", request.output);
  if (request.max_tokens >= 0) json.field("max_tokens", request.max_tokens);
  json.field("class", name(request.service_class));
  json.field("tenant", workload.tenants()[request.tenant]);
  if (request.weight != 1) json.field("weight", request.weight);
  if (request.prefix != 0) {
    json.field("prefix", workload.prefixes()[request.prefix]);
    json.field("prefix_tokens", request.prefix_tokens);
  }
  switch (request.leaving) {
    case Leaving::never: break;
    case Leaving::after_ms: json.field("cancel_after_ms", request.leaves_after); break;
    case Leaving::after_rows: json.field("cancel_after_rows", request.leaves_after); break;
    case Leaving::after_tokens: json.field("cancel_after_tokens", request.leaves_after); break;
  }
  if (request.timeout_ms > 0) json.field("timeout_ms", request.timeout_ms);
  if (request.reads_per_s > 0) json.field("reads_per_s", request.reads_per_s);
  if (request.repeats > 0) json.field("repeats", request.repeats);
  if (request.adapter > 0) json.field("adapter", request.adapter);
  if (request.conversation > 0) {
    json.field("conversation", workload.conversations()[request.conversation]);
    if (request.think > Duration::zero()) json.field("think_ms", to_milliseconds(request.think));
    if (request.back > 0) json.field("back", request.back);
    if (request.calls) json.field("calls", true);
  }
  json.end_object();
  out += '\n';
}

}  // namespace chasqui
