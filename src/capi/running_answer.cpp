#include "capi/running_answer.h"

#include <algorithm>
#include <utility>

#include <boost/json.hpp>

#include "api/core/errors.h"
#include "api/openai/openai_json.h"
#include "base/json_writer.h"

namespace chasqui {
namespace {

namespace json = boost::json;

const json::value* member(const json::value* value, std::string_view name) {
  const json::object* object = value != nullptr ? value->if_object() : nullptr;
  return object != nullptr ? object->if_contains(name) : nullptr;
}

// What the first choice says.
std::string content_of(const std::string& body) {
  boost::json::error_code failed;
  const json::value value = json::parse(body, failed);
  const json::value* choices = failed ? nullptr : member(&value, "choices");
  if (choices == nullptr || !choices->is_array() || choices->get_array().empty()) return {};
  const json::value* const choice = &choices->get_array().front();
  for (const json::value* said : {member(choice, "text"), member(member(choice, "delta"), "content"),
                                  member(member(choice, "message"), "content")}) {
    if (said != nullptr && said->is_string()) return std::string(said->get_string());
  }
  return {};
}

}  // namespace

// No default: a new code cannot be forgotten here.
chasqui_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_request: return CHASQUI_INVALID_REQUEST;
    case ErrorCode::context_too_long: return CHASQUI_CONTEXT_TOO_LONG;
    case ErrorCode::unauthorized:
    case ErrorCode::forbidden: return CHASQUI_FORBIDDEN;
    case ErrorCode::not_found: return CHASQUI_NOT_FOUND;
    case ErrorCode::conflict: return CHASQUI_CONFLICT;
    case ErrorCode::too_large: return CHASQUI_TOO_LARGE;
    case ErrorCode::quota_exceeded:
    case ErrorCode::overloaded: return CHASQUI_OVERLOADED;
    case ErrorCode::unavailable: return CHASQUI_UNAVAILABLE;
    case ErrorCode::model_failure: return CHASQUI_MODEL_FAILURE;
    case ErrorCode::not_supported: return CHASQUI_NOT_SUPPORTED;
    case ErrorCode::storage_full: return CHASQUI_STORAGE_FULL;
    case ErrorCode::internal: return CHASQUI_INTERNAL;
  }
  return CHASQUI_INTERNAL;
}

RunningAnswer::RunningAnswer(std::vector<RequestId> ids, std::size_t of_one_prompt, bool stream,
                             std::unique_ptr<AnswerWriter> writer)
    : ids_(std::move(ids)),
      of_one_prompt_(of_one_prompt),
      stream_(stream),
      writer_(std::move(writer)),
      collected_(ids_.size()),
      whole_(*writer_, collected_),
      usages_(ids_.size()),
      running_(ids_.size()) {}

bool RunningAnswer::take(Event event, std::deque<chasqui_event>& out) {
  const auto place = std::ranges::find(ids_, event.request) - ids_.begin();
  event.choice = static_cast<std::int32_t>(place);
  if (event.kind == Event::Kind::finished) {
    event.asked = cancelled_ && event.reason == FinishReason::cancelled;
    if (const auto failure = failure_of(event)) return fail(*failure, out);
    usages_[static_cast<std::size_t>(place)] = event.usage;
    if (place == 0) reason_ = event.reason;
    --running_;
  }
  return stream_ ? take_streamed(event, out) : take_whole(event, out);
}

bool RunningAnswer::take_streamed(const Event& event, std::deque<chasqui_event>& out) {
  frames_.clear();
  write_events(*writer_, {&event, 1}, frames_);
  tell_frames(frames_, out);
  if (running_ > 0) return false;
  std::string body;
  JsonWriter out_json(body);
  out_json.begin_object();
  out_json.field("reason", name(reason_));
  out_json.key("usage");
  write_usage(out_json, sum_usage(usages_, of_one_prompt_));
  out_json.key("timings");
  write_timings(out_json, usages_);
  out_json.end_object();
  end(std::move(body), {}, out);
  return true;
}

bool RunningAnswer::take_whole(Event& event, std::deque<chasqui_event>& out) {
  whole_.take(event);
  if (whole_.too_large()) {
    return fail({ErrorCode::too_large, "the answer is too large in one piece: ask for a stream, or for less of it", ""},
                out);
  }
  if (running_ > 0) return false;
  std::string body = writer_->whole(collected_);
  std::string text = content_of(body);
  end(std::move(body), std::move(text), out);
  return true;
}

// Each is `data: JSON` and an empty line; comments begin with a colon.
void RunningAnswer::tell_frames(std::string_view frames, std::deque<chasqui_event>& out) const {
  constexpr std::string_view kBegin = "data: ";
  while (!frames.empty()) {
    const std::size_t end = frames.find("\n\n");
    const std::string_view frame = frames.substr(0, end);
    frames.remove_prefix(end == std::string_view::npos ? frames.size() : end + 2);
    if (!frame.starts_with(kBegin) || frame == "data: [DONE]") continue;
    chasqui_event& event = out.emplace_back();
    event.request = number();
    event.kind = CHASQUI_PART;
    event.json = frame.substr(kBegin.size());
    event.text = content_of(event.json);
  }
}

bool RunningAnswer::fail(const Error& error, std::deque<chasqui_event>& out) const {
  chasqui_event& event = out.emplace_back();
  event.request = number();
  event.kind = CHASQUI_FAILED;
  event.json = error_body(error);
  event.text = error.message;
  event.status = status_of(error.code);
  return true;
}

void RunningAnswer::end(std::string body, std::string text, std::deque<chasqui_event>& out) const {
  chasqui_event& event = out.emplace_back();
  event.request = number();
  event.kind = CHASQUI_END;
  event.json = std::move(body);
  event.text = std::move(text);
  event.usage = sum_usage(usages_, of_one_prompt_);
}

}  // namespace chasqui
