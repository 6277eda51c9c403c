// What one context is made of. The same for every kind of model, so that the flags of the server fill one struct.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/types.h"
#include "model/kv_type.h"
#include "model/thread_figures.h"

namespace chasqui {

enum class FlashAttention { automatic, on, off };
enum class GrammarEngine { chasqui, llama };  // what keeps answers to grammars: model/grammar, or libllama

class CoreShare;
class LlamaOptions;
class LlamaWeights;
class LlamaMediaEncoder;

// Draft heads, see model/heads.h.
struct HeadsConfig {
  std::shared_ptr<const LlamaWeights> weights;  // EAGLE-3, of a file of their own
  bool own = false;                             // MTP, in the model's file
  TokenCount draft_tokens = 3;                  // of a sequence at a time

  bool any() const { return own || weights != nullptr; }
};

struct ModelConfig {
  std::int32_t slots = 8;      // 1 … 256
  TokenCount cells = 0;        // of all slots together; 0: slots times what the model was trained with
  TokenCount cells_least = 0;  // of a slot, where `cells` is 0; 0: as app/capacity thinks
  // A sequence may be this long, though the pool has more cells; 0: as long as the pool, or its slot, is.
  TokenCount cells_per_slot_max = 0;
  bool unified = false;            // one pool of cells instead of one stream per slot
  std::int32_t rows_max = 512;     // rows of one batch; at least `slots`
  std::int32_t outputs_max = 0;    // … of which have logits; each costs memory for a vocabulary of floats; 0: `slots`
  std::int32_t threads = 0;        // compute threads for a batch of one row; 0: default_threads()
  std::int32_t threads_batch = 0;  // … for larger ones; 0: as `threads`
  // Which others compute, too: where `threads` is 0 a decode has its part of them. Null: it shares with none.
  std::shared_ptr<CoreShare> cores{};
  bool adapt_threads = true;  // use fewer while that is faster, see model/thread_choice.h
  // How long idle compute threads spin before they sleep: 0 (not at all) … 100. Spinning is fast on free cores and
  // ruinous on shared ones.
  std::int32_t polling = 50;
  FlashAttention flash_attention = FlashAttention::automatic;
  KvType kv_keys = KvType::f16;
  KvType kv_values = KvType::f16;
  // Rows that a model whose memory is a state can take back: each slot has as many states more.
  TokenCount rollback = 0;
  bool swa_full = false;  // cells for the whole context in layers with a sliding window, too
  HeadsConfig heads{};
  std::shared_ptr<const LlamaOptions> llama{};  // llama-server's flags for contexts; null: libllama's defaults
  std::shared_ptr<LlamaMediaEncoder> media{};   // of pictures and sounds; null: the model reads text alone
  bool draft = false;                           // of a draft model: control vectors are made for the large one
  bool warm_up = true;  // decode once at construction, so that the first request does not pay for page faults
  // What an earlier start measured; empty: warm_up measures, and says what came out unless something was in its way.
  ThreadFigures thread_figures{};
  std::function<void(const ThreadFigures&)> on_threads_measured{};
  // Called with the addresses on the PCI bus of the GPUs that have a part of the context, each time that it is made.
  std::function<void(const std::vector<std::string>&)> on_gpus{};
};

// Cores that compute threads should use: the ones that this process may run on, without hyper-threads' second halves
// where the system tells them apart, and no more than the quota of its control group.
std::int32_t default_threads();

}  // namespace chasqui
