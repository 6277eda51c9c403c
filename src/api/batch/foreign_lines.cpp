#include "api/batch/foreign_lines.h"

#include <algorithm>
#include <utility>

#include "api/batch/batch_line.h"
#include "api/core/errors.h"
#include "base/log.h"
#include "base/random_id.h"

namespace chasqui {
namespace {

constexpr Duration kBusyLeast = milliseconds(250);
constexpr Duration kBusyMost = seconds(30);
constexpr Duration kRefusalLeast = milliseconds(500);
constexpr Duration kRefusalMost = seconds(4);

// Routes refuse a model that this node does not serve by the field that names it.
bool is_unknown_model(int status, const std::string& body) {
  return status == 404 && body.find(R"("param":"model")") != std::string::npos;
}

}  // namespace

Caller line_caller(Caller caller) {
  caller.service_class = caller.most_urgent = ServiceClass::background;
  caller.admin = false;
  return caller;
}

class ForeignLines::Place {
 public:
  Place(ForeignLines& lines, std::uint64_t owner) : lines_(lines), owner_(owner) {}
  ~Place() {
    --lines_.running_;
    const auto found = lines_.running_of_.find(owner_);
    if (--found->second == 0) lines_.running_of_.erase(found);
    lines_.host_.changed();
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  ForeignLines& lines_;
  const std::uint64_t owner_;
};

std::size_t ForeignLines::running_of(std::uint64_t owner) const {
  const auto found = running_of_.find(owner);
  return found == running_of_.end() ? 0 : found->second;
}

TimePoint ForeignLines::next_time() const {
  TimePoint next = kNever;
  for (const auto& [receipt, held] : held_) {
    if (!held->runs) next = std::min(next, held->until);
  }
  return next;
}

void ForeignLines::take(std::vector<TakenLine> lines) {
  for (TakenLine& taken : lines) admit(std::move(taken));
  host_.changed();
}

void ForeignLines::admit(TakenLine taken) {
  const SharedLine& line = taken.line;
  if (line.expires <= frontend_.clock.unix_seconds()) return share_.orders().drops.push_back(post_of(taken));
  if (line.losses >= kLossesMost) {
    log_warning("a line of a batch has ended the nodes that ran it, and gets an error",
                {{"batch", line.key.batch}, {"line", line.key.line}, {"nodes", line.losses}});
    return answer(taken, LineEnd::lost, 500, random_id("batch_req_"),
                  error_body(500, "every server that began this request has ended before it was answered"));
  }
  if (!is_batch_endpoint(line.endpoint)) return answer(taken, LineEnd::refused, 0, {}, {});
  const auto held = std::make_shared<Held>();
  held->taken = std::move(taken);
  park(*held, !frontend_.keys.caller_of(held->taken.line.owner).has_value());
  held_.insert_or_assign(held->taken.receipt, held);
}

void ForeignLines::park(Held& held, bool refused) {
  held.runs = false;
  held.refused = refused;
  held.until = frontend_.loop.now() + kParked;
}

void ForeignLines::lose(const std::vector<std::string>& receipts) {
  for (const std::string& receipt : receipts) {
    const auto found = held_.find(receipt);
    if (found == held_.end()) continue;
    const HeldPtr held = found->second;
    held->lost = true;
    held_.erase(found);
    if (held->exchange != nullptr) held->exchange->stop();
  }
}

void ForeignLines::pump() {
  const TimePoint now = frontend_.loop.now();
  std::vector<HeldPtr> waiting;
  for (const auto& [receipt, held] : held_) {
    if (!held->runs) waiting.push_back(held);
  }
  for (const HeldPtr& held : waiting) {
    if (held->runs || !held_.contains(held->taken.receipt)) continue;  // since one of them has begun
    const std::uint64_t owner = held->taken.line.owner;
    if (!held->refused && now >= paused_until_ && host_.may_begin(owner)) {
      held->runs = true;
      ++running_;
      ++running_of_[owner];
      host_.launch(run(held), "line of another node");
    } else if (now >= held->until) {
      held->refused ? refuse(*held) : give_back(held->taken, held->taken.line.refused_since);
      held_.erase(held->taken.receipt);
    }
  }
}

void ForeignLines::give_back_waiting() {
  std::erase_if(held_, [this](const auto& each) {
    if (each.second->runs) return false;
    give_back(each.second->taken, each.second->taken.line.refused_since);
    return true;
  });
}

void ForeignLines::stop() {
  std::vector<HeldPtr> all;
  for (const auto& [receipt, held] : held_) all.push_back(held);
  for (const HeldPtr& held : all) {
    if (held->exchange != nullptr) held->exchange->stop();
  }
}

net::Awaitable<void> ForeignLines::run(HeldPtr held) {
  const SharedLine& line = held->taken.line;
  const Place place(*this, line.owner);
  const std::optional<Caller> caller = frontend_.keys.caller_of(line.owner);
  if (!caller) {
    park(*held, true);
    co_return;
  }
  const std::string request_id = random_id("batch_req_");
  LineExchange exchange(line.endpoint, line.body, request_id);
  held->exchange = &exchange;
  net::Awaitable<void> answering = handler_(line.endpoint, line_caller(*caller), exchange);
  co_await frontend_.loop.guard(std::move(answering), "line of another node");
  held->exchange = nullptr;
  finish(*held, exchange, request_id);
}

void ForeignLines::finish(Held& held, LineExchange& exchange, const std::string& request_id) {
  if (held.lost) return;
  const TakenLine& taken = held.taken;
  const int status = exchange.answered() ? exchange.answer().status : 500;
  const bool busy = status == 429 || status == 503;
  std::string body = exchange.take_answer_body();
  if (is_unknown_model(status, body)) return park(held, true);
  if (busy || (exchange.stopped() && status >= 500)) {
    if (!exchange.stopped()) {
      pause_ = std::min(std::max(2 * pause_, kBusyLeast), kBusyMost);
      paused_until_ = std::max(paused_until_, frontend_.loop.now() + pause_);
    }
    give_back(taken, taken.line.refused_since);
    return forget(taken.receipt);
  }
  pause_ = refusal_ = Duration::zero();
  if (!exchange.answered()) body = error_body(500, "the server failed to answer this request");
  answer(taken, LineEnd::answered, status, request_id, std::move(body));
  forget(taken.receipt);
}

// By its receipt, which may be a part of what is forgotten.
void ForeignLines::forget(const std::string& receipt) {
  const auto found = held_.find(receipt);
  if (found != held_.end()) held_.erase(found);
}

void ForeignLines::answer(const TakenLine& taken, LineEnd end, int status, std::string request_id, std::string body) {
  LinePost post = post_of(taken);
  post.message = write_message(SharedResult{taken.line.key, end, status, std::move(request_id), std::move(body)});
  share_.orders().answers.push_back(std::move(post));
}

void ForeignLines::give_back(const TakenLine& taken, std::int64_t refused_since) {
  LinePost post = post_of(taken);
  SharedLine line = taken.line;
  line.refused_since = refused_since;
  post.message = write_message(line);
  share_.orders().returns.push_back(std::move(post));
}

void ForeignLines::refuse(Held& held) {
  const std::int64_t now = frontend_.clock.unix_seconds();
  refusal_ = std::min(std::max(2 * refusal_, kRefusalLeast), kRefusalMost);
  takes_from_ = frontend_.loop.now() + refusal_;
  const std::int64_t since = held.taken.line.refused_since != 0 ? held.taken.line.refused_since : now;
  if (now - since >= kRefusedFor) return answer(held.taken, LineEnd::refused, 0, {}, {});
  give_back(held.taken, since);
}

}  // namespace chasqui
