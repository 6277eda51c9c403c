#include "api/core/idempotent_answer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "api/core/frontend.h"
#include "api/core/idempotency_store.h"
#include "api/core/reading_time.h"
#include "net/offload.h"

namespace chasqui {
namespace {

// Hashed on the loop within half a millisecond.
constexpr std::size_t kBriefBody = 128 * 1024;

// Of a key that is fresh: until an answer is kept, the request may be sent again when this goes.
class Claim {
 public:
  Claim(IdempotencyStore& store, IdempotencyStore::Name name) : store_(store), name_(std::move(name)) {}
  ~Claim() {
    if (!kept_) store_.forget(name_);
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  void keep(net::RecordedAnswer answer, TimePoint now) {
    kept_ = true;
    store_.keep(name_, std::make_shared<const net::RecordedAnswer>(std::move(answer)), now);
  }

 private:
  IdempotencyStore& store_;
  const IdempotencyStore::Name name_;
  bool kept_ = false;
};

Result<void> check_key(const std::string& key) {
  const bool plain = std::ranges::all_of(key, [](char c) { return c > ' ' && c <= '~'; });
  if (plain && !key.empty() && key.size() <= kSizeLimit<"idempotency_key_bytes">) return {};
  return invalid_field("Idempotency-Key", "Idempotency-Key must be up to " +
                                              std::to_string(kSizeLimit<"idempotency_key_bytes">) +
                                              " printable characters without blanks");
}

// What makes it the same request; of a long body in the pool.
net::Awaitable<Result<net::Sha256>> hash_of(Call& call) {
  std::string head = call.exchange.request().target + '\n';
  if (call.body.size() <= kBriefBody) co_return net::sha256({head, call.body});
  // Owned by the job as well: the client may leave, and its request end, while the pool still reads.
  const auto owned = std::make_shared<std::string>(std::move(call.body));
  auto work = [owned, head] { return net::sha256({head, *owned}); };
  net::OffloadTerms terms;
  terms.owner = call.caller.tenant.id;
  terms.bytes = owned->size();
  terms.can_wait = writing_can_wait(owned->size());
  Result<net::Sha256> hash = co_await call.frontend.offload.run(std::move(work), std::move(terms));
  if (hash) call.body = std::move(*owned);
  co_return hash;
}

Handled replay(net::HttpExchange& exchange, IdempotencyStore::AnswerPtr answer) {
  exchange.add_response_header("Idempotent-Replayed", "true");
  net::HttpHeaders headers = answer->headers;
  if (!answer->streamed) {
    net::HttpResponse response;
    response.headers = std::move(headers);
    response.body = answer->body;
    co_await exchange.respond(std::move(response));
    co_return Result<void>();
  }
  const bool open = co_await exchange.start_stream(200, std::move(headers));
  if (open) co_await exchange.finish_stream(answer->body);
  co_return Result<void>();
}

}  // namespace

Handled answer_once(Call call, std::string key, const Dialect& dialect, std::function<Handled(Call)> handler) {
  if (auto good = check_key(key); !good) co_return good;
  const Result<net::Sha256> hash = co_await hash_of(call);
  if (!hash) co_return hash.error();
  Frontend& frontend = call.frontend;
  net::HttpExchange& exchange = call.exchange;
  IdempotencyStore::Name name{call.caller.tenant.id, std::move(key)};
  IdempotencyStore::Found found = frontend.idempotency.begin(name, *hash, frontend.clock.now());
  if (found.state == IdempotencyStore::State::answered) {
    Result<void> replayed = co_await replay(exchange, std::move(found.answer));
    co_return replayed;
  }
  if (found.state == IdempotencyStore::State::running) {
    co_return Error{ErrorCode::conflict,
                    "a request with this Idempotency-Key is under way; try again when it has ended", "Idempotency-Key"};
  }
  if (found.state == IdempotencyStore::State::other_request) {
    net::HttpResponse refusal(
        422, "application/json",
        dialect.fault_body(422, "Idempotency-Key was used for another request; use a new one for each request"));
    co_await exchange.respond(std::move(refusal));
    co_return Result<void>();
  }
  Claim claim(frontend.idempotency, std::move(name));
  net::RecordedExchange recorded(exchange, kSizeLimit<"idempotent_answer_bytes">);
  Call first{recorded, frontend, call.served, std::move(call.caller), std::move(call.body)};
  Handled running = handler(std::move(first));
  Result<void> done = co_await std::move(running);
  auto answer = done ? recorded.take_answer() : std::nullopt;
  if (answer) claim.keep(std::move(*answer), frontend.clock.now());
  co_return done;
}

}  // namespace chasqui
