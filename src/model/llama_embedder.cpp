// Pooling is done here, from the vectors of tokens, so that an input may be longer than a chunk; only the head for
// ranking is the graph's, where what the last chunk of an input says counts.
#include "model/llama_embedder.h"

#include <algorithm>
#include <bit>
#include <exception>
#include <optional>
#include <utility>

#include <llama.h>

#ifdef __linux__
#include <sys/resource.h>
#endif

#include "base/clock.h"
#include "base/log.h"
#include "model/llama_control_vector.h"
#include "model/llama_params.h"
#include "model/llama_runtime.h"

namespace chasqui {
namespace {

// Of a chunk while a model generates; streams that begin during a chunk share the cores with the rest of it, so that a
// larger one is to take no longer than this.
constexpr std::size_t kRowsBesideStreams = 128;
constexpr Duration kChunkTime = milliseconds(100);

// On Linux of this thread alone; elsewhere it would be the whole process.
void lower_priority() {
#ifdef __linux__
  constexpr int kNice = 10;
  if (::setpriority(PRIO_PROCESS, 0, kNice) != 0) log_warning("the priority of embeddings could not be lowered");
#endif
}

class EmbedderBatch {
 public:
  explicit EmbedderBatch(std::size_t rows) : arrays(llama_batch_init(static_cast<std::int32_t>(rows), 0, 1)) {}
  ~EmbedderBatch() { llama_batch_free(arrays); }
  EmbedderBatch(const EmbedderBatch&) = delete;
  EmbedderBatch& operator=(const EmbedderBatch&) = delete;

  void add(Token token, TokenCount position, std::int32_t sequence) {
    const auto i = arrays.n_tokens++;
    arrays.token[i] = token;
    arrays.pos[i] = position;
    arrays.n_seq_id[i] = 1;
    arrays.seq_id[i][0] = sequence;
    arrays.logits[i] = 1;
  }

  llama_batch arrays;
};

void add_row(Pooling pooling, const float* row, std::size_t length, bool first, bool last, Embedded& out) {
  const std::span<const float> values(row, length);
  switch (pooling) {
    case Pooling::none:
      out.values.insert(out.values.end(), values.begin(), values.end());
      ++out.rows;
      return;
    case Pooling::mean:
      out.values.resize(length);
      for (std::size_t i = 0; i < length; ++i) out.values[i] += values[i];
      return;
    case Pooling::cls:
      if (first) out.values.assign(values.begin(), values.end());
      return;
    case Pooling::last:
      if (last) out.values.assign(values.begin(), values.end());
      return;
    case Pooling::rank: return;  // the graph's
  }
}

}  // namespace

std::string_view name(Pooling pooling) {
  switch (pooling) {
    case Pooling::none: return "none";
    case Pooling::mean: return "mean";
    case Pooling::cls: return "cls";
    case Pooling::last: return "last";
    case Pooling::rank: return "rank";
  }
  return "none";
}

Result<std::unique_ptr<LlamaEmbedder>> LlamaEmbedder::make(WeightsPtr weights, const EmbedderConfig& config) {
  std::unique_ptr<LlamaEmbedder> embedder(new LlamaEmbedder(std::move(weights)));
  if (auto opened = embedder->open(config); !opened) return opened.error();
  lower_priority();
  return embedder;
}

LlamaEmbedder::~LlamaEmbedder() {
  if (context_ != nullptr) llama_free(context_);
}

Result<void> LlamaEmbedder::open(const EmbedderConfig& config) {
  const ModelInfo& info = weights_->info();
  if (config.pooling == Pooling::rank && !info.ranks) {
    return invalid_field("pooling", "the model has no head for ranking");
  }
  if (!info.trims_anywhere() || info.encoder) {
    return invalid_field("model", "embeddings of this architecture, " + info.architecture + ", are not supported");
  }
  shape_.pooling = config.pooling;
  shape_.tokens_max = std::min(config.tokens_max, info.context_trained);
  shape_.length = config.pooling == Pooling::rank ? static_cast<std::int32_t>(llama_model_n_cls_out(weights_->model()))
                                                  : llama_model_n_embd_out(weights_->model());
  llama_ = config.llama;
  cores_ = config.cores;
  load_.kind = Batch::Kind::prefill;
  if (cores_) {
    const std::int32_t most = config.threads > 0 ? std::min(config.threads, cores_->cores()) : cores_->cores();
    choice_.emplace(most, most);
  }
  if (auto made = make_context(static_cast<std::uint32_t>(config.chunk_tokens)); !made) return made.error();
  whole_ = !info.generates || llama_get_memory(context_) == nullptr;
  return {};
}

Result<void> LlamaEmbedder::make_context(std::uint32_t chunk) {
  if (context_ != nullptr) llama_free(context_);
  context_ = nullptr;
  llama_context_params params = first_context_params(llama_);
  params.n_batch = chunk;
  params.n_ubatch = params.n_batch;
  params.n_seq_max = kSequences;
  // One long input, and what is begun in its last chunk.
  params.n_ctx = static_cast<std::uint32_t>(shape_.tokens_max) + 2 * chunk;
  params.n_outputs_max = std::max<std::uint32_t>(params.n_batch, kSequences);
  params.kv_unified = true;  // inputs of any length beside each other in one pass
  params.swa_full = true;
  params.embeddings = true;
  params.pooling_type = shape_.pooling == Pooling::rank ? LLAMA_POOLING_TYPE_RANK : LLAMA_POOLING_TYPE_NONE;
  params.n_threads = threads_;
  params.n_threads_batch = threads_;
  params.no_perf = true;
  take_llama_error();
  context_ = weights_->make_context(params);
  if (context_ == nullptr) {
    return Error{ErrorCode::unavailable, "Cannot make a context for embeddings: " + take_llama_error(), ""};
  }
  chunk_ = llama_n_batch(context_);
  if (auto applied = apply_adapters(); !applied) return applied;
  return apply_control_vectors(context_, llama_, weights_->info());
}

Result<void> LlamaEmbedder::apply_adapters() {
  counts_adapters_ = true;
  if (weights_->set_adapters(context_, adapters_)) return {};
  adapters_.clear();
  weights_->set_adapters(context_, adapters_);
  return Error{ErrorCode::model_failure, "An adapter of the model could not be loaded again.", "lora"};
}

Result<std::vector<Embedded>> LlamaEmbedder::embed(std::span<const std::vector<Token>> inputs,
                                                   const AdapterSet* adapters) {
  std::vector<Embedded> out(inputs.size());
  std::vector<AdapterUse> wanted;
  if (adapters != nullptr) wanted = adapters->uses;
  const bool other = wanted != adapters_;
  adapters_ = std::move(wanted);
  if (context_ == nullptr) {  // there was no memory for a larger one
    if (auto made = make_context(static_cast<std::uint32_t>(chunk_)); !made) return made.error();
  } else if (other) {
    if (auto applied = apply_adapters(); !applied) return applied.error();
  }
  llama_memory_clear(llama_get_memory(context_), false);
  std::vector<Row> rows;
  std::size_t begun = 0;  // inputs of this chunk
  std::size_t most = rows_most();
  const auto compute_all = [&]() -> Result<void> {
    if (auto computed = compute(inputs, rows); !computed) return computed;
    if (auto taken = take(inputs, rows, out); !taken) return taken;
    rows.clear();
    most = rows_most();
    return {};
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto& input = inputs[i];
    CHECK(!input.empty() && input.size() <= static_cast<std::size_t>(shape_.tokens_max));
    if (whole_ && !rows.empty() && rows.size() + input.size() > most) {
      if (auto done = compute_all(); !done) return done.error();
      begun = 0;
    }
    if (whole_ && input.size() > chunk_) {
      if (auto made = make_context(std::bit_ceil(static_cast<std::uint32_t>(input.size()))); !made) return made.error();
    }
    ++begun;
    for (std::size_t position = 0; position < input.size(); ++position) {
      rows.push_back({i, static_cast<TokenCount>(position)});
      const bool ends = position + 1 == input.size();
      const bool all = ends && (i + 1 == inputs.size() || begun == kSequences);
      if (rows.size() < (whole_ ? chunk_ : most) && !all) continue;
      if (auto done = compute_all(); !done) return done.error();
      begun = ends ? 0 : 1;
    }
  }
  if (shape_.pooling != Pooling::mean) return out;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (float& value : out[i].values) value /= static_cast<float>(inputs[i].size());
  }
  return out;
}

std::size_t LlamaEmbedder::rows_most() const {
  static const RealClock clock;
  const bool beside = cores_ != nullptr && cores_->spare(clock.now()) == 1;
  const auto within = row_time_ > Duration::zero() ? static_cast<std::size_t>(kChunkTime / row_time_) : 0;
  return std::min(chunk_, beside ? kRowsBesideStreams : std::max(kRowsBesideStreams, within));
}

// Before each chunk, which is computed to its end: a stream that begins meanwhile has the cores that it wants, since it
// has the higher priority.
void LlamaEmbedder::use_threads(const std::vector<Row>& rows, TimePoint now) {
  load_.rows.clear();
  for (const Row& row : rows) load_.rows.emplace_back().position = row.position;
  const std::int32_t threads = choice_->choose(load_, now, cores_->spare(now)).threads;
  if (threads != std::exchange(threads_, threads)) llama_set_n_threads(context_, threads, threads);
}

Result<void> LlamaEmbedder::compute(std::span<const std::vector<Token>> inputs, const std::vector<Row>& rows) {
  static const RealClock clock;
  const TimePoint start = clock.now();
  std::optional<CoreShare::Beside> beside;
  if (choice_) {
    beside.emplace(*cores_);
    use_threads(rows, start);
  }
  EmbedderBatch batch(rows.size());
  for (const Row& row : rows) {
    batch.add(inputs[row.input][static_cast<std::size_t>(row.position)], row.position, sequence_of(row.input));
  }
  int status = 0;
  std::optional<SharedLock::Reading> counting;
  if (counts_adapters_) counting.emplace(weights_->adapters_lock());
  try {
    status = llama_decode(context_, batch.arrays);
    counts_adapters_ = counts_adapters_ && status != 0;
    const TimePoint end = clock.now();
    if (status == 0) row_time_ = (end - start) / std::ssize(rows);
    if (status == 0 && choice_) choice_->observe(end - start, end);
  } catch (const std::exception& e) {
    log_error("libllama threw while embedding", {{"reason", e.what()}});
    status = -4;
  }
  if (status == 0) return {};
  log_error("embedding failed", {{"status", status}, {"rows", rows.size()}});
  return Error{ErrorCode::model_failure, "The model failed to compute the embeddings.", ""};
}

// Forgets the inputs that end here, too.
Result<void> LlamaEmbedder::take(std::span<const std::vector<Token>> inputs, const std::vector<Row>& rows,
                                 std::vector<Embedded>& out) {
  const auto length = static_cast<std::size_t>(shape_.length);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const bool last = static_cast<std::size_t>(row.position) + 1 == inputs[row.input].size();
    Embedded& embedded = out[row.input];
    const bool pooled = shape_.pooling == Pooling::rank;
    if (!pooled || last) {
      const float* values = pooled ? llama_get_embeddings_seq(context_, sequence_of(row.input))
                                   : llama_get_embeddings_ith(context_, static_cast<std::int32_t>(i));
      if (values == nullptr) return Error{ErrorCode::model_failure, "The model gave no embeddings.", ""};
      if (pooled) {
        embedded.values.assign(values, values + length);
      } else {
        add_row(shape_.pooling, values, length, row.position == 0, last, embedded);
      }
    }
    if (!last) continue;
    if (shape_.pooling != Pooling::none) embedded.rows = 1;
    llama_memory_seq_rm(llama_get_memory(context_), sequence_of(row.input), -1, -1);
  }
  return {};
}

}  // namespace chasqui
