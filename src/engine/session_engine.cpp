#include "engine/session_engine.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <poll.h>

namespace chasqui {
namespace {

constexpr std::size_t kCacheBytes = std::size_t{1} << 30;
constexpr std::int32_t kSlots = 4;
constexpr TokenCount kCellsPerSlot = 4096;
constexpr int kPollMs = 1;  // where there is no descriptor to wait on

RequestLimits limits_of(const ModelShape& shape) {
  RequestLimits limits;
  limits.vocabulary = shape.vocabulary;
  limits.context = shape.cells_per_slot;
  return limits;
}

SessionLimits session_limits(const SessionEngineConfig& config, const ModelShape& shape) {
  SessionLimits limits;
  limits.tokens = shape.cells_per_slot - 1;
  limits.sessions = config.sessions;
  limits.ttl = config.ttl;
  return limits;
}

// What waits to be written is a quarter of the memory, as with `chasqui serve`.
Result<void> open_folder(const LoadedModel& model, const ModelShape& shape, SessionEngineConfig& config) {
  ReuseConfig& reuse = config.engine.reuse;
  if (config.cache_folder.empty()) return {};
  if (reuse.cache.bytes == 0) return invalid_field("cache_folder", "cache_folder needs memory to read into");
  const auto identity = model.identify(config.model, shape);
  if (!identity) return identity.error();
  auto folder = SnapshotFolder::open(config.cache_folder + "/snapshots", *identity);
  if (!folder) return folder.error();
  config.engine.disk = std::move(*folder);
  reuse.disk = DiskLimits{.bytes = config.cache_folder_bytes, .queue_bytes = reuse.cache.bytes / 4};
  reuse.cache.bytes -= reuse.disk->queue_bytes;
  return {};
}

}  // namespace

SessionEngineConfig::SessionEngineConfig() {
  model.slots = kSlots;
  engine.reuse.cache.bytes = kCacheBytes;
}

Result<std::unique_ptr<SessionEngine>> SessionEngine::open(LoadedModel model, SessionEngineConfig config) {
  if (config.model.cells == 0) {
    const TokenCount trained = model.info.context_trained > 0 ? model.info.context_trained : kCellsPerSlot;
    config.model.cells = config.model.slots * std::min(trained, kCellsPerSlot);
  }
  if (config.workers == 0) return invalid_field("workers", "workers must be at least 1");
  Models contexts;
  while (contexts.size() < config.workers) {
    auto context = model.make(config.model);
    if (!context) return context.error();
    contexts.push_back(std::move(*context));
  }
  if (auto opened = open_folder(model, contexts.front()->shape(), config); !opened) return opened.error();
  return std::unique_ptr<SessionEngine>(new SessionEngine(std::move(model), std::move(contexts), config));
}

SessionEngine::SessionEngine(LoadedModel model, Models contexts, const SessionEngineConfig& config)
    : model_(std::move(model)),
      clock_(config.clock != nullptr ? *config.clock : static_cast<const Clock&>(real_clock_)),
      engine_(config.engine, std::move(contexts), model_.tokenizer, clock_, wakeup_),
      limits_(limits_of(engine_.shape())),
      sessions_(session_limits(config, engine_.shape()), *model_.tokenizer) {
  sessions_.on_unpinned([this](std::uint64_t pin) { engine_.unpin(pin); });
}

Result<SessionId> SessionEngine::create() {
  const TimePoint now = clock_.now();
  sessions_.expire(now);
  SessionSettings settings;
  settings.ttl = sessions_.limits().ttl;
  settings.created = clock_.unix_seconds();
  const auto session = sessions_.create({}, settings, {}, now);
  if (!session) return session.error();
  return (*session)->id;
}

SessionInput SessionEngine::input_of(const Session& session) const {
  return {model_, {session.length(), sessions_.limits().tokens, session.chat}};
}

Result<void> SessionEngine::append_with(const SessionId& id,
                                        const std::function<Result<SessionDelta>(const SessionInput&)>& read) {
  auto use = sessions_.take(0, id, clock_.now());
  if (!use) return use.error();
  auto delta = read(input_of(use->session()));
  if (!delta) return delta.error();
  const auto appended = use->append(std::move(*delta), clock_.now());
  if (!appended) return appended.error();
  return {};
}

Result<void> SessionEngine::append(const SessionId& id, std::string_view text) {
  return append_with(id, [text](const SessionInput& input) { return input.from_text(text, ParseSpecial::no); });
}

Result<void> SessionEngine::append(const SessionId& id, ChatMessage message) {
  return append_with(id, [&message](const SessionInput& input) { return input.from_messages({std::move(message)}); });
}

Result<void> SessionEngine::append(const SessionId& id, std::vector<ChatMessage> messages) {
  return append_with(id, [&messages](const SessionInput& input) { return input.from_messages(std::move(messages)); });
}

Result<RequestId> SessionEngine::generate(const SessionId& id, RequestDraft how) {
  auto use = sessions_.take(0, id, clock_.now());
  if (!use) return use.error();
  const SessionInput input = input_of(use->session());
  auto before = input.before_answer();
  if (!before) return before.error();
  auto units = input.units();
  if (!units) return units.error();
  how.prompt = use->session().tokens;
  how.prompt.insert(how.prompt.end(), before->tokens.begin(), before->tokens.end());
  if (!place_units(*units, how.prompt)) return other_projector();
  if (!units->empty()) how.media = std::make_shared<const MediaUnits>(std::move(*units));
  how.keep_tokens = true;
  how.pin = use->session().pin;
  const auto request = make_request(engine_.next_id(), std::move(how), limits_, clock_.now());
  if (!request) return request.error();
  if (auto submitted = engine_.submit(*request); !submitted) return submitted.error();
  use->begin((*request)->id, std::move(*before));
  return (*request)->id;
}

void SessionEngine::receive_events(int wait_ms) {
  pollfd waiting{wakeup_.fd(), POLLIN, 0};
  if (wakeup_.kind() == Wakeup::Kind::polling) {
    ::poll(nullptr, 0, kPollMs);
  } else {
    ::poll(&waiting, 1, wait_ms);
  }
  wakeup_.acknowledge();  // before taking, so that nothing falls between
  engine_.take_events(fresh_);
  const TimePoint now = clock_.now();
  for (const Event& event : fresh_) {
    if (event.kind == Event::Kind::text) sessions_.said(event);
    if (event.kind == Event::Kind::finished) sessions_.finished(event, now);
  }
  std::move(fresh_.begin(), fresh_.end(), std::back_inserter(events_));
}

std::optional<Event> SessionEngine::next() {
  while (events_.empty()) {
    if (engine_.in_flight() == 0) return std::nullopt;
    receive_events();
  }
  return take_first();
}

std::optional<Event> SessionEngine::next_within(milliseconds time) {
  if (events_.empty()) receive_events(static_cast<int>(time.count()));
  return take_first();
}

std::optional<Event> SessionEngine::take_first() {
  if (events_.empty()) return std::nullopt;
  Event event = std::move(events_.front());
  events_.erase(events_.begin());
  return event;
}

Result<Event> SessionEngine::answer(const SessionId& id, RequestDraft how,
                                    const std::function<void(std::string_view)>& text) {
  const auto request = generate(id, std::move(how));
  if (!request) return request.error();
  for (;;) {
    const auto mine = [&](const Event& event) { return event.request == *request; };
    const auto found = std::find_if(events_.begin(), events_.end(), mine);
    if (found == events_.end()) {
      receive_events();
      continue;
    }
    Event event = std::move(*found);
    events_.erase(found);
    if (!event.text.empty()) text(event.text);
    if (event.kind != Event::Kind::finished) continue;
    if (event.reason == FinishReason::error) return event.error;
    return event;
  }
}

Result<void> SessionEngine::cancel(const SessionId& id) {
  const auto request = sessions_.cancel(0, id, clock_.now());
  if (!request) return request.error();
  if (*request) engine_.cancel(**request);
  return {};
}

Result<SessionId> SessionEngine::fork(const SessionId& id) {
  const auto fork = sessions_.fork({}, id, clock_.unix_seconds(), clock_.now());
  if (!fork) return fork.error();
  return (*fork)->id;
}

Result<void> SessionEngine::end(const SessionId& id) {
  const auto request = sessions_.end(0, id);
  if (!request) return request.error();
  if (*request) engine_.cancel(**request);
  return {};
}

}  // namespace chasqui
