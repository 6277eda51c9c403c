// What is known about a model once it is loaded: shown at start and by the APIs, and asked by everyone who sets
// limits. A plain value, made by the loader, constant afterwards.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/types.h"
#include "model/embedder.h"

namespace chasqui {

// Sampling settings that the model's author put into the file; a server may use them as its defaults.
struct RecommendedSampling {
  std::optional<float> temperature;
  std::optional<std::int32_t> top_k;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<std::int32_t> repeat_last_n;
  std::optional<float> repeat_penalty;

  bool empty() const { return !temperature && !top_k && !top_p && !min_p && !repeat_last_n && !repeat_penalty; }
};

// A LoRA adapter that is loaded; others refer to it by its place among those of the model.
struct AdapterInfo {
  std::string name;            // what clients ask for; unique
  std::string path;            // of its file
  float scale = 1;             // the default
  std::uint64_t contents = 0;  // a hash of the file, the same after a restart
  std::string task_name;       // what its author says about it, if anything
  std::string prompt_prefix;
  std::int32_t place = 0;
  std::uint32_t version = 0;  // of those that have had this place
  bool at_run_time = false;   // loaded while the server ran
};

// Tokens around a gap that the model fills in; -1 where it has none.
struct InfillTokens {
  Token prefix = -1;
  Token suffix = -1;
  Token middle = -1;
  Token repository = -1;
  Token file = -1;  // before the name of a file

  bool present() const { return prefix >= 0 && suffix >= 0 && middle >= 0; }
};

struct ModelInfo {
  std::string path;          // empty when the model came from memory or is simulated
  std::string name;          // general.name of the file, else the file's name without .gguf
  std::string description;   // all of it in one phrase: "qwen2, 494 M parameters, Q4_0"
  std::string architecture;  // "llama", "qwen2", "sim" …
  std::string format;        // of most tensors: "Q4_0", "F16" …

  std::uint64_t parameters = 0;
  std::uint64_t size_bytes = 0;    // of all tensors
  TokenCount context_trained = 0;  // or what RoPE was scaled to
  // What RoPE was made for, where it was scaled; beyond it the keys of some models are made with other factors. 0: was
  // not.
  TokenCount rope_context = 0;
  std::int32_t embedding_length = 0;
  std::int32_t layers = 0;
  std::uint64_t kv_bytes_per_cell = 0;     // keys and values of all layers, as f16
  std::int64_t window_layers = 0;          // of these, those that see no more than the sliding window
  std::uint64_t state_bytes_per_slot = 0;  // of layers that keep a state instead, about

  std::string vocabulary_type;  // "SPM", "BPE", "WPM", "UGM", "RWKV", "none" …
  TokenCount vocabulary = 0;
  Token bos = -1;  // -1: the model has none
  Token eos = -1;
  std::string bos_text;
  std::string eos_text;
  bool adds_bos = false;  // AddSpecial::yes puts bos first

  std::string chat_template;  // source; empty when the file has none

  bool recurrent = false;         // memory is a state, not a list of positions
  bool hybrid = false;            // some layers are recurrent
  TokenCount sliding_window = 0;  // 0: every layer sees everything
  bool generates = true;          // false: made for embeddings alone, whose rows see those that follow
  bool encoder = false;           // needs an encoder pass, which Chasqui does not do

  std::int32_t heads = 0;  // that draft next tokens (MTP)

  std::optional<Pooling> pooling;  // of its embeddings, where the file says
  bool ranks = false;              // has a head for ranking
  std::string rank_template;       // {query} and {document} as such a head wants them; empty: special tokens between
  Token separator = -1;            // before a document, where there is no template
  bool adds_eos = false;

  RecommendedSampling sampling;
  std::vector<AdapterInfo> adapters;  // that were loaded with it, by place
  InfillTokens infill;

  // Prefixes of a sequence can be kept, whatever their length.
  bool trims_anywhere() const { return !recurrent && !hybrid; }
};

}  // namespace chasqui
