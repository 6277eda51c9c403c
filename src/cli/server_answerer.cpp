#include "cli/server_answerer.h"

#include <boost/json.hpp>

#include "cli/chat_stream.h"
#include "cli/http_client.h"
#include "cli/question.h"

namespace chasqui::cli {
namespace {

constexpr Duration kFirstCall = seconds(10);

Error refused(const HttpAnswer& answer) { return Error{ErrorCode::unavailable, message_of(answer), {}}; }

// Servers that have no list of models need no name either.
std::string first_model(const std::string& body) {
  boost::system::error_code error;
  const boost::json::value value = boost::json::parse(body, error);
  if (error || !value.is_object()) return {};
  const boost::json::value* list = value.get_object().if_contains("data");
  if (list == nullptr || !list->is_array() || list->get_array().empty()) return {};
  const boost::json::value& first = list->get_array().front();
  const boost::json::value* id = first.is_object() ? first.get_object().if_contains("id") : nullptr;
  if (id == nullptr || !id->is_string()) return {};
  return {id->get_string().data(), id->get_string().size()};
}

class ServerAnswerer final : public Answerer {
 public:
  ServerAnswerer(std::unique_ptr<HttpClient> http, std::string model, const AnswerSettings& settings)
      : http_(std::move(http)), model_(std::move(model)), settings_(settings) {}

  std::string model_name() const override { return model_; }
  Result<AnswerReport> answer(const Conversation& conversation, const AnswerSinks& sinks) override;

 private:
  std::string body(const Conversation& conversation) const;

  const std::unique_ptr<HttpClient> http_;
  const std::string model_;
  const AnswerSettings settings_;
  const RealClock clock_;
};

std::string ServerAnswerer::body(const Conversation& conversation) const {
  std::string text;
  JsonWriter w(text);
  w.begin_object();
  if (!model_.empty()) w.field("model", model_);
  write_question(w, conversation, settings_);
  w.field("stream", true);
  w.raw("stream_options", R"({"include_usage":true})");
  w.end_object();
  return text;
}

Result<AnswerReport> ServerAnswerer::answer(const Conversation& conversation, const AnswerSinks& sinks) {
  AnswerReport report;
  const TimePoint begin = clock_.now();
  AnswerSinks timed = sinks;
  timed.text = [&](std::string_view piece) {
    if (report.first_token_s == 0) report.first_token_s = to_seconds(clock_.now() - begin);
    sinks.text(piece);
  };
  ChatStream stream(timed, report);
  HttpCall call;
  call.method = "POST";
  call.path = "/v1/chat/completions";
  call.body = body(conversation);
  call.piece = [&stream](std::string_view bytes) { stream.feed(bytes); };
  call.stopped = [&] { return sinks.stopped() || !stream.failure().empty(); };
  const auto answer = http_->call(call);
  report.total_s = to_seconds(clock_.now() - begin);
  if (!stream.failure().empty()) return Error{ErrorCode::model_failure, stream.failure(), {}};
  if (!answer) return answer.error();
  report.stopped = answer->stopped;
  if (!report.stopped && answer->status != 200) return refused(*answer);
  if (!report.stopped && !stream.done()) return Error{ErrorCode::unavailable, "the server broke the answer off", {}};
  return report;
}

}  // namespace

Result<AnswererPtr> open_server(const std::string& url, const std::string& key, std::string model,
                                const AnswerSettings& settings) {
  auto http = HttpClient::open(url, key);
  if (!http) return http.error();
  if (model.empty()) {
    HttpCall call;
    call.path = "/v1/models";
    call.timeout = kFirstCall;
    const auto answer = (*http)->call(call);
    if (!answer) return answer.error();
    if (answer->status == 401 || answer->status == 403) return refused(*answer);
    if (answer->status == 200) model = first_model(answer->body);
  }
  return AnswererPtr(std::make_unique<ServerAnswerer>(std::move(*http), std::move(model), settings));
}

}  // namespace chasqui::cli
