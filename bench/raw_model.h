// libllama alone in its best configuration: what the machine can do before anybody serves anything. One context, one
// attached thread pool, slots with dense ids. Owned by main(); single-threaded.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ggml-cpu.h>
#include <llama.h>

namespace chasqui::raw {

struct Options {
  std::string model_path;
  std::int32_t sequences = 32;
  std::int32_t prompt = 32;
  std::int32_t tokens = 48;
  std::int32_t threads = 0;     // 0: one for each core
  std::int32_t rows = 512;      // of one batch
  std::int32_t depth = 160;     // cells that a sequence holds already: --curve
  std::int32_t rounds = 9;      // measurements of each figure: --curve and --moves
  std::int32_t slot_cells = 0;  // 0: as many as the work needs
  bool unified = false;
  bool every_logit = false;  // touch all logits of an output row, as a sampler would
  bool no_flash = false;     // attention without the flash kernels
};

// Milliseconds.
using Samples = std::vector<double>;
double median(Samples samples);
double smallest(const Samples& samples);
// How long `work` takes.
double time_ms(const std::function<void()>& work);

class RawModel {
 public:
  // Ends the process when the model cannot be loaded. `cells` are for each sequence.
  RawModel(const Options& options, std::int32_t sequences, std::int32_t cells);
  ~RawModel();
  RawModel(const RawModel&) = delete;
  RawModel& operator=(const RawModel&) = delete;

  void add_row(std::int32_t slot, std::int32_t position, bool output);
  std::int32_t rows_waiting() const { return batch_.n_tokens; }
  // One llama_decode of what was added, and a look at the logits of its output rows. Milliseconds.
  double decode();

  // Reads a prompt of `cells` rows into a slot.
  void fill(std::int32_t slot, std::int32_t cells);
  void trim(std::int32_t slot, std::int32_t keep);
  void clear();
  // Makes everything that libllama has put off happen.
  void settle() { llama_synchronize(context_); }

  llama_context* context() { return context_; }
  llama_memory_t memory() { return llama_get_memory(context_); }
  std::int32_t cells_per_slot() const { return static_cast<std::int32_t>(llama_n_ctx_seq(context_)); }
  std::int32_t threads() const { return threads_; }

 private:
  llama_token next_token();

  llama_model* model_ = nullptr;
  llama_context* context_ = nullptr;
  ggml_threadpool_t pool_ = nullptr;
  llama_batch batch_{};
  std::int32_t threads_;
  std::int32_t vocabulary_ = 0;
  bool every_logit_;
  std::uint32_t random_ = 12345;
  float sink_ = 0;
};

void run_work(const Options& options);
void run_curve(const Options& options);
void run_moves(const Options& options);

}  // namespace chasqui::raw
