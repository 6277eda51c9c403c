// Bodies of requests: JSON, the fields of a generation, and the checks behind them. What passes them is valid.
#include <cmath>

#include "api/body/generation_fields.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace chasqui;
  const TimeLimit limit;
  const auto body = parse_json_object(text_of(bytes, size));
  if (!body) return 0;
  Fields fields(*body);
  RequestDraft draft;
  read_generation_fields(fields, draft);
  draft.service_class = read_class(fields, ServiceClass::standard);
  if (!fields.ok()) {
    must(!fields.error().message.empty(), "a refusal says why");
    return 0;
  }
  RequestLimits limits;
  limits.vocabulary = 1000;
  limits.context = 100;
  draft.prompt = {1, 2, 3};
  draft.text_bias.clear();
  const auto request = make_request(RequestId{1}, std::move(draft), limits, TimePoint{});
  if (!request) return 0;
  const Request& good = **request;
  must(good.max_tokens >= 0 && good.max_tokens <= 97, "no answer outgrows the context");
  must(std::isfinite(good.sampling.temperature) && std::isfinite(good.sampling.top_p), "numbers are numbers");
  must(good.stop.size() <= limits.stops_max, "stop strings within their limit");
  return 0;
}
