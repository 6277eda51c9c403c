#include "api/core/embedding_service.h"

#include <algorithm>
#include <iterator>

#include "base/limits.h"

namespace chasqui {
namespace {

// Of one job: the next request waits for no more.
constexpr std::size_t kJobTokens = 512;

// The end of the inputs that are embedded together, from `begin` on.
std::size_t end_of_job(const std::vector<std::vector<Token>>& inputs, std::size_t begin) {
  std::size_t tokens = 0;
  std::size_t end = begin;
  while (end < inputs.size() && (end == begin || tokens + inputs[end].size() <= kJobTokens)) {
    tokens += inputs[end++].size();
  }
  return end;
}

// Adds to a count for as long as the coroutine is in the scope, however it leaves it.
class InFlight {
 public:
  explicit InFlight(std::size_t& count, std::size_t added = 1) : count_(count), added_(added) { count_ += added_; }
  ~InFlight() { count_ -= added_; }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

 private:
  std::size_t& count_;
  const std::size_t added_;
};

}  // namespace

struct EmbeddingService::Bench {
  Bench(const LoadedModel& loaded, const EmbeddingConfig& wished) : model(loaded), config(wished) {}

  Result<void> open() {
    if (embedder != nullptr) return {};
    if (!model.make_embedder) return invalid_field("model", "the simulated model has no embeddings");
    auto made = model.make_embedder(config.pooling, config.tokens_max);
    if (!made) return made.error();
    embedder = std::move(*made);
    return {};
  }

  Result<std::vector<Embedded>> embed(const std::vector<std::vector<Token>>& inputs, const AdapterSet* adapters) {
    if (auto opened = open(); !opened) return opened.error();
    return embedder->embed(inputs, adapters);
  }

  const LoadedModel& model;
  const EmbeddingConfig config;
  std::unique_ptr<Embedder> embedder;
};

EmbeddingService::EmbeddingService(const LoadedModel& model, net::EventLoop& loop, const EmbeddingConfig& config)
    : config_(config), bench_(std::make_shared<Bench>(model, config)) {
  net::OffloadOptions options;
  options.threads = 1;
  options.name = "embed";
  pool_ = std::make_unique<net::OffloadPool>(loop, options);
}

EmbeddingService::~EmbeddingService() = default;

std::shared_ptr<const void> EmbeddingService::computing() const { return bench_; }

Result<EmbeddingConfig> EmbeddingService::configure(const LoadedModel& model, const std::optional<Pooling>& wish,
                                                    TokenCount context, bool leaves) {
  if (wish == Pooling::rank && !model.info.ranks) {
    return invalid_field("--pooling",
                         "--pooling rank needs a model with a head for ranking, which " + model.info.name + " has not");
  }
  EmbeddingConfig config;
  config.pooling = wish.value_or(model.info.pooling.value_or(Pooling::mean));
  config.tokens_max = context;
  config.leaves = leaves;
  if (model.info.context_trained > 0) config.tokens_max = std::min(context, model.info.context_trained);
  return config;
}

net::Awaitable<Result<std::vector<Embedded>>> EmbeddingService::embed(net::HttpExchange& exchange, std::uint32_t tenant,
                                                                      AdapterSetPtr adapters,
                                                                      std::vector<std::vector<Token>> inputs) {
  std::size_t tokens = 0;
  for (const auto& input : inputs) tokens += input.size();
  if (waiting_ > 0 && waiting_tokens_ + tokens > kSizeLimit<"vector_tokens">) {
    co_return Error{ErrorCode::overloaded, "too many texts wait to be embedded or ranked; try again later", ""};
  }
  Result<std::vector<Embedded>> out = std::vector<Embedded>{};
  {
    const InFlight one(waiting_);
    const InFlight its_tokens(waiting_tokens_, tokens);
    out = co_await embed_all(exchange, tenant, std::move(adapters), std::move(inputs));
  }
  if (waiting_ == 0 && config_.leaves) {
    auto leave = [bench = bench_] { bench->embedder.reset(); };
    co_await pool_->run(std::move(leave));
  }
  co_return out;
}

net::Awaitable<Result<std::vector<Embedded>>> EmbeddingService::embed_all(net::HttpExchange& exchange,
                                                                          std::uint32_t tenant, AdapterSetPtr adapters,
                                                                          std::vector<std::vector<Token>> inputs) {
  std::vector<Embedded> out;
  std::size_t begin = 0;
  while (begin < inputs.size() && !exchange.client_gone()) {
    const std::size_t end = end_of_job(inputs, begin);
    std::vector<std::vector<Token>> part(std::make_move_iterator(inputs.begin() + static_cast<std::ptrdiff_t>(begin)),
                                         std::make_move_iterator(inputs.begin() + static_cast<std::ptrdiff_t>(end)));
    inputs_.add(part.size());
    for (const auto& input : part) tokens_.add(input.size());
    auto work = [bench = bench_, adapters, part = std::move(part)] { return bench->embed(part, adapters.get()); };
    net::OffloadTerms terms;
    terms.owner = tenant;
    Result<std::vector<Embedded>> done = co_await pool_->run(std::move(work), std::move(terms));
    if (!done) co_return done.error();
    out.insert(out.end(), std::make_move_iterator(done->begin()), std::make_move_iterator(done->end()));
    begin = end;
  }
  if (begin < inputs.size()) out.clear();
  co_return out;
}

}  // namespace chasqui
