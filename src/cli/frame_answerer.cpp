#include "cli/frame_answerer.h"

#include <utility>

#include <boost/json.hpp>

#include "base/clock.h"
#include "cli/json_parts.h"
#include "cli/question.h"
#include "net/frame_line.h"

namespace chasqui::cli {
namespace {

namespace json = boost::json;

constexpr Duration kStopPollEvery = milliseconds(50);  // … whether the user wants to stop

Error broken(const std::string& what) { return {ErrorCode::unavailable, what, {}}; }

std::int64_t number_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

const json::object& part_of(const json::object& object, std::string_view name) {
  static const json::object kEmpty;
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_object() ? value->get_object() : kEmpty;
}

// The next event; an empty object when there was none for a moment.
Result<json::object> next_event(net::FrameLine& line) {
  const Result<std::string> body = line.next(kStopPollEvery);
  if (!body) return body.error();
  if (body->empty()) return json::object();
  boost::system::error_code error;
  json::value event = json::parse(*body, error);
  if (error || !event.is_object()) return broken("the server does not speak frames");
  return std::move(event.get_object());
}

class FrameAnswerer final : public Answerer {
 public:
  FrameAnswerer(std::string path, const AnswerSettings& settings) : path_(std::move(path)), settings_(settings) {}

  Result<void> learn_name();
  std::string model_name() const override { return model_; }
  Result<AnswerReport> answer(const Conversation& conversation, const AnswerSinks& sinks) override;

 private:
  std::string body(const Conversation& conversation) const;
  Result<void> read(const AnswerSinks& sinks, AnswerReport& report, TimePoint begin);

  const std::string path_;
  const AnswerSettings settings_;
  const RealClock clock_;
  net::FrameLine line_;
  std::string model_;
};

Result<void> FrameAnswerer::learn_name() {
  if (auto open = line_.open(path_); !open) return open;
  if (auto sent = line_.send(R"({"id":0,"event":"props"})"); !sent) return sent;
  const TimePoint late = clock_.now() + seconds(10);
  while (clock_.now() < late) {
    const Result<json::object> event = next_event(line_);
    if (!event) return event.error();
    if (event->empty()) continue;
    if (text_at(*event, "event") == "error") return broken(text_at(*event, "message"));
    model_ = text_at(part_of(*event, "result"), "model_alias");
    return {};
  }
  return broken(path_ + " does not answer");
}

std::string FrameAnswerer::body(const Conversation& conversation) const {
  std::string text;
  JsonWriter w(text);
  w.begin_object();
  w.field("id", 1);
  write_question(w, conversation, settings_);
  w.end_object();
  return text;
}

Result<AnswerReport> FrameAnswerer::answer(const Conversation& conversation, const AnswerSinks& sinks) {
  AnswerReport report;
  const TimePoint begin = clock_.now();
  if (!line_.is_open()) {
    if (auto open = line_.open(path_); !open) return open.error();
  }
  Result<void> done = line_.send(body(conversation));
  if (done) done = read(sinks, report, begin);
  if (!done) {
    if (done.error().code == ErrorCode::unavailable) line_.close();  // the next question tries again
    return done.error();
  }
  report.total_s = to_seconds(clock_.now() - begin);
  return report;
}

// Until the request's own end: what comes after a cancel belongs to it, too.
Result<void> FrameAnswerer::read(const AnswerSinks& sinks, AnswerReport& report, TimePoint begin) {
  for (;;) {
    if (!report.stopped && sinks.stopped()) {
      report.stopped = true;
      if (auto sent = line_.send(R"({"id":1,"event":"cancel"})"); !sent) return sent;
    }
    const Result<json::object> event = next_event(line_);
    if (!event) return event.error();
    const std::string kind = text_at(*event, "event");
    if (kind == "token" && !report.stopped) {
      const std::string text = text_at(*event, "text");
      if (report.first_token_s == 0) report.first_token_s = to_seconds(clock_.now() - begin);
      report.text += text;
      if (!text.empty()) sinks.text(text);
    }
    if (kind == "error") return Error{ErrorCode::model_failure, text_at(*event, "message"), {}};
    if (kind != "eos") continue;
    const json::object& usage = part_of(*event, "usage");
    report.finish_reason = text_at(*event, "reason");
    report.prompt_tokens = number_of(usage, "prompt_tokens");
    report.completion_tokens = number_of(usage, "completion_tokens");
    report.cached_tokens = number_of(part_of(usage, "prompt_tokens_details"), "cached_tokens");
    return {};
  }
}

}  // namespace

Result<AnswererPtr> open_frames(const std::string& path, const AnswerSettings& settings) {
  auto answerer = std::make_unique<FrameAnswerer>(path, settings);
  if (auto known = answerer->learn_name(); !known) return known.error();
  return AnswererPtr(std::move(answerer));
}

}  // namespace chasqui::cli
