#include "record/load_trace.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/json_writer.h"
#include "record/recorded_request.h"
#include "record/replay.h"

namespace chasqui {
namespace {

// As much as a line of a trace may say.
constexpr std::int64_t kTraceMost = 1'000'000;

struct Arrival {
  TimePoint at{};
  std::int64_t prompt_tokens = 0;
  std::int64_t max_tokens = 0;
  ServiceClass service_class = ServiceClass::standard;
};

Result<void> read_arrivals(const RecordStream& stream, std::vector<Arrival>& out) {
  const auto head = head_of(stream);
  if (!head) return head.error();
  for (const Record& record : stream.records) {
    if (record.kind != TapKind::added) continue;
    ByteReader io(record.parts);
    const auto request = read_request(io, head->config.kv);
    if (!request) return request.error();
    out.push_back(
        {(*request)->arrival, std::ssize((*request)->prompt), (*request)->max_tokens, (*request)->service_class});
  }
  return {};
}

}  // namespace

Result<LoadTrace> load_trace(const std::vector<const RecordStream*>& streams) {
  std::vector<Arrival> arrivals;
  for (const RecordStream* const stream : streams) {
    if (auto read = read_arrivals(*stream, arrivals); !read) return read.error();
  }
  std::ranges::stable_sort(arrivals, {}, &Arrival::at);
  LoadTrace out;
  out.requests = arrivals.size();
  for (const Arrival& one : arrivals) {
    JsonWriter json(out.lines);
    json.begin_object();
    json.field("at_ms", std::round(to_milliseconds(one.at - arrivals.front().at) * 1000) / 1000);
    // `bench` has words of which most vocabularies have one token for each.
    json.field("prompt_words", std::clamp<std::int64_t>(one.prompt_tokens, 1, kTraceMost));
    json.field("max_tokens", std::clamp<std::int64_t>(one.max_tokens, 1, kTraceMost));
    json.field("class", name(one.service_class));
    json.end_object();
    out.lines += '\n';
  }
  return out;
}

}  // namespace chasqui
