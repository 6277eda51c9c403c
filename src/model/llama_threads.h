// The compute threads of one LlamaModel: a pool for each number of them that decodes were given so far, because the
// threads of a pool that have nothing to do spin too. With llama-server's flags (--cpu-mask, --cpu-strict, --prio and
// those for batches) a pool stands on certain CPUs and has a priority; the thread that decodes is its first. Owned by a
// LlamaModel; its thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "model/llama_options.h"

struct common_cpu_params;
struct ggml_threadpool;

namespace chasqui {

// Compute threads where the configuration leaves that open: default_threads(), and no more than CPUs that are allowed.
std::int32_t default_threads(const LlamaOptionsPtr& options);

class LlamaThreads {
 public:
  // `polling` and `draft` as in ModelConfig. Errors name the flag.
  static Result<std::unique_ptr<LlamaThreads>> make(const LlamaOptionsPtr& options, std::int32_t polling, bool draft);
  ~LlamaThreads();
  LlamaThreads(const LlamaThreads&) = delete;
  LlamaThreads& operator=(const LlamaThreads&) = delete;

  // For a decode of one row, or of several.
  ggml_threadpool* pool(std::int32_t threads, bool several_rows);
  // The next decode comes from another thread, perhaps: that one is put where the pool is.
  void expect_another_thread();

 private:
  struct Place {
    std::vector<std::int32_t> cpus;  // empty: any
    bool strict = false;             // each thread on one of its own
    int priority = 0;                // ggml_sched_priority
    std::int32_t polling = 0;        // as in ModelConfig

    bool operator==(const Place&) const = default;
    bool anywhere() const { return cpus.empty() && !strict && priority == 0; }
  };
  static Result<void> place(const common_cpu_params& said, const char* flag, Place& out);

  struct Pool {
    std::int32_t threads = 0;
    Place place;
    ggml_threadpool* pool = nullptr;
  };

  LlamaThreads() = default;

  Place one_row_;  // constant after make()
  Place several_rows_;
  std::vector<Pool> pools_;
};

// libllama moves the thread that decodes to where its pool stands. One that only makes a model gets back the CPUs and
// the priority that it had, so that its own threads do not inherit those of the pool.
class KeptPlace {
 public:
  explicit KeptPlace(const LlamaOptionsPtr& options);
  ~KeptPlace();
  KeptPlace(const KeptPlace&) = delete;
  KeptPlace& operator=(const KeptPlace&) = delete;

 private:
  struct Saved;
  std::unique_ptr<Saved> saved_;  // null: nothing moves it
};

}  // namespace chasqui
