#include "api/core/embedding_service.h"

#include <algorithm>
#include <utility>

#include "base/cpu_account.h"
#include "base/limits.h"
#include "net/event_signal.h"

namespace chasqui {
namespace {

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

// For as long as a request waits for what the thread computes, what the process computes beside it is its, too.
class WaitsForJobs {
 public:
  WaitsForJobs() { cpu_account().begin_waiting(); }
  ~WaitsForJobs() { cpu_account().end_waiting(); }
  WaitsForJobs(const WaitsForJobs&) = delete;
  WaitsForJobs& operator=(const WaitsForJobs&) = delete;
};

// What the thread has made of a job.
struct JobOutcome {
  std::vector<Embedded> vectors;
  CpuShare cost;
};

Usage usage_of(const EmbeddingWait& wait, std::size_t tokens, TimePoint arrival, TimePoint ended) {
  Usage usage;
  const TimePoint started = wait.jobs > 0 ? wait.started : ended;  // or its client left before
  usage.prompt = static_cast<TokenCount>(tokens);
  usage.queue = started - arrival;
  usage.prefill = ended - started;
  usage.steps = wait.jobs;
  usage.shared = wait.shared;
  usage.cpu = wait.cpu;
  usage.joules = wait.joules;
  return usage;
}

std::size_t tokens_of(const std::vector<std::vector<Token>>& inputs) {
  std::size_t tokens = 0;
  for (const auto& input : inputs) tokens += input.size();
  return tokens;
}

}  // namespace

struct EmbeddingService::Bench {
  Bench(const LoadedModel& loaded, const EmbeddingConfig& wished) : model(loaded), config(wished) {}

  Result<void> open() {
    if (embedder != nullptr) return {};
    if (!model.make_embedder) return invalid_field("model", "the simulated model has no embeddings");
    auto made = model.make_embedder(config);
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

struct EmbeddingService::Waiting : EmbeddingWait {
  explicit Waiting(net::EventLoop& loop) : signal(loop) {}
  net::EventSignal signal;  // it is over, or it is its turn to compute
};

EmbeddingService::EmbeddingService(const LoadedModel& model, net::EventLoop& loop, const EmbeddingConfig& config)
    : config_(config), bench_(std::make_shared<Bench>(model, config)), loop_(loop) {
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

net::Awaitable<Result<EmbeddedInputs>> EmbeddingService::embed(net::HttpExchange& exchange, std::uint32_t tenant,
                                                               AdapterSetPtr adapters,
                                                               std::vector<std::vector<Token>> inputs) {
  const std::size_t tokens = tokens_of(inputs);
  if (waiting_ > 0 && waiting_tokens_ + tokens > kSizeLimit<"vector_tokens">) {
    co_return Error{ErrorCode::overloaded, "too many texts wait to be embedded or ranked; try again later", ""};
  }
  Result<EmbeddedInputs> out = EmbeddedInputs{};
  {
    const InFlight one(waiting_);
    const InFlight its_tokens(waiting_tokens_, tokens);
    const WaitsForJobs waits;
    out = co_await embed_all(exchange, tenant, std::move(adapters), std::move(inputs));
  }
  if (waiting_ == 0 && config_.leaves) {
    auto leave = [bench = bench_] { bench->embedder.reset(); };
    co_await pool_->run(std::move(leave));
  }
  co_return out;
}

// One of them computes for all, and when it is over another one does: none outlives its handler.
net::Awaitable<Result<EmbeddedInputs>> EmbeddingService::embed_all(net::HttpExchange& exchange, std::uint32_t tenant,
                                                                   AdapterSetPtr adapters,
                                                                   std::vector<std::vector<Token>> inputs) {
  if (inputs.empty()) co_return EmbeddedInputs{};
  const std::size_t tokens = tokens_of(inputs);
  const TimePoint arrival = clock_.now();
  Waiting mine(loop_);
  mine.tenant = tenant;
  mine.adapters = std::move(adapters);
  mine.inputs = std::move(inputs);
  mine.gone = [&exchange] { return exchange.client_gone(); };
  line_.add(mine);
  while (!mine.over()) {
    if (computing_) {
      [[maybe_unused]] const bool told = co_await mine.signal.wait();
    } else {
      computing_ = true;
      co_await compute_next();
      computing_ = false;
    }
  }
  if (EmbeddingWait* const next = computing_ ? nullptr : line_.front()) static_cast<Waiting*>(next)->signal.notify();
  if (mine.error) co_return *mine.error;
  if (mine.left) mine.out.clear();
  co_return EmbeddedInputs{std::move(mine.out), usage_of(mine, tokens, arrival, clock_.now())};
}

net::Awaitable<void> EmbeddingService::compute_next() {
  EmbeddingLine::Job job = line_.next();
  for (EmbeddingWait* const left : job.left) static_cast<Waiting*>(left)->signal.notify();
  if (job.inputs.empty()) co_return;
  inputs_.add(job.inputs.size());
  for (const std::size_t tokens : job.tokens) tokens_.add(tokens);
  const TimePoint now = clock_.now();
  for (EmbeddingWait* const wait : job.of) {
    if (wait->jobs == 0) wait->started = now;
  }
  auto work = [bench = bench_, adapters = job.adapters, inputs = std::move(job.inputs)]() -> Result<JobOutcome> {
    CpuJob cpu(cpu_account());
    Result<std::vector<Embedded>> vectors = bench->embed(inputs, adapters.get());
    const CpuShare cost = cpu.end();
    if (!vectors) return vectors.error();
    return JobOutcome{std::move(*vectors), cost};
  };
  Result<JobOutcome> done = co_await pool_->run(std::move(work));
  if (done) {
    line_.give(job, std::move(done->vectors), done->cost);
  } else {
    line_.give(job, done.error());
  }
  for (EmbeddingWait* const wait : job.of) {
    if (wait->over()) static_cast<Waiting*>(wait)->signal.notify();
  }
}

}  // namespace chasqui
