#include "cli/local_answerer.h"

namespace chasqui::cli {
namespace {

constexpr milliseconds kPollEvery{50};

class LocalAnswerer final : public Answerer {
 public:
  LocalAnswerer(std::unique_ptr<SessionEngine> engine, const AnswerSettings& settings)
      : engine_(std::move(engine)), settings_(settings) {}

  std::string model_name() const override { return engine_->model().info.name; }
  Result<AnswerReport> answer(const Conversation& conversation, const AnswerSinks& sinks) override;

 private:
  Result<void> tell(const Conversation& conversation);
  RequestDraft draft() const;
  Result<AnswerReport> listen(const AnswerSinks& sinks, TimePoint begin);
  void forget();

  const std::unique_ptr<SessionEngine> engine_;
  const AnswerSettings settings_;
  const RealClock clock_;
  std::optional<SessionId> session_;
  std::uint64_t revision_ = 0;  // of what the session has heard
  std::size_t heard_ = 0;       // messages
};

void LocalAnswerer::forget() {
  if (session_) (void)engine_->end(*session_);
  session_.reset();
  heard_ = 0;
}

// Only what is new, where the session has heard the beginning; the prefix cache has the rest where it has not.
Result<void> LocalAnswerer::tell(const Conversation& conversation) {
  std::vector<ChatMessage> messages = conversation.messages();
  if (session_ && revision_ == conversation.revision() && heard_ < messages.size()) {
    const auto fresh = messages.begin() + static_cast<std::ptrdiff_t>(heard_);
    if (engine_->append(*session_, std::vector<ChatMessage>(fresh, messages.end()))) {
      heard_ = messages.size();
      return {};
    }
  }
  forget();
  auto session = engine_->create();
  if (!session) return session.error();
  session_ = std::move(*session);
  revision_ = conversation.revision();
  heard_ = messages.size();
  return engine_->append(*session_, std::move(messages));
}

RequestDraft LocalAnswerer::draft() const {
  RequestDraft how;
  const auto& wished = engine_->model().info.sampling;
  if (wished.temperature) how.sampling.temperature = *wished.temperature;
  if (wished.top_k) how.sampling.top_k = *wished.top_k;
  if (wished.top_p) how.sampling.top_p = *wished.top_p;
  if (wished.min_p) how.sampling.min_p = *wished.min_p;
  if (settings_.temperature) how.sampling.temperature = static_cast<float>(*settings_.temperature);
  how.sampling.seed = settings_.seed;
  how.max_tokens = settings_.max_tokens;
  return how;
}

Result<AnswerReport> LocalAnswerer::listen(const AnswerSinks& sinks, TimePoint begin) {
  AnswerReport report;
  for (;;) {
    if (sinks.stopped() && !report.stopped) {
      report.stopped = true;
      (void)engine_->cancel(*session_);
    }
    const std::optional<Event> event = engine_->next_within(kPollEvery);
    if (!event) continue;
    if (!event->text.empty() && !report.stopped) {
      if (report.first_token_s == 0) report.first_token_s = to_seconds(clock_.now() - begin);
      report.text += event->text;
      sinks.text(event->text);
    }
    if (event->kind != Event::Kind::finished) continue;
    if (event->reason == FinishReason::error) return event->error;
    report.finish_reason = name(event->reason);
    report.prompt_tokens = event->usage.prompt;
    report.cached_tokens = event->usage.cached;
    report.completion_tokens = event->usage.completion;
    report.total_s = to_seconds(clock_.now() - begin);
    return report;
  }
}

Result<AnswerReport> LocalAnswerer::answer(const Conversation& conversation, const AnswerSinks& sinks) {
  const TimePoint begin = clock_.now();
  Result<void> told = tell(conversation);
  if (told) {
    const auto request = engine_->generate(*session_, draft());
    if (!request) told = request.error();
  }
  if (!told) {
    forget();
    return told.error();
  }
  auto report = listen(sinks, begin);
  // What was cut off says less here than the session has heard, or nothing at all: it begins anew the next time.
  if (report && !report->stopped) {
    ++heard_;
  } else {
    forget();
  }
  return report;
}

}  // namespace

Result<AnswererPtr> open_local(LoadedModel model, SessionEngineConfig config, const AnswerSettings& settings) {
  auto engine = SessionEngine::open(std::move(model), std::move(config));
  if (!engine) return engine.error();
  return AnswererPtr(std::make_unique<LocalAnswerer>(std::move(*engine), settings));
}

}  // namespace chasqui::cli
