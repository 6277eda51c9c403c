#include "model/llama_threads.h"

#include <algorithm>
#include <cstring>
#include <string>

#include <common.h>
#include <ggml-cpu.h>
#include <llama.h>

#ifdef __linux__
#include <sched.h>
#endif

#include "base/log.h"
#include "model/model_config.h"

namespace chasqui {

#ifdef __linux__
// Of the calling thread.
struct KeptPlace::Saved {
  cpu_set_t cpus{};
  int policy = SCHED_OTHER;
  sched_param priority{};

  Saved() {
    ::sched_getaffinity(0, sizeof cpus, &cpus);
    policy = ::sched_getscheduler(0);
    ::sched_getparam(0, &priority);
  }
  ~Saved() {
    const bool back =
        ::sched_setaffinity(0, sizeof cpus, &cpus) == 0 && ::sched_setscheduler(0, policy, &priority) == 0;
    if (!back) log_warning("a thread keeps the CPUs or the priority of compute threads");
  }
  Saved(const Saved&) = delete;
  Saved& operator=(const Saved&) = delete;
};
#else
struct KeptPlace::Saved {};
#endif

namespace {

constexpr std::uint32_t kPollingMost = 100;  // more: nothing was said, see LlamaOptions

bool may_use(std::int32_t cpu) {
#ifdef __linux__
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return true;
  return CPU_ISSET(static_cast<unsigned>(cpu), &allowed);
#else
  return cpu >= 0;
#endif
}

std::vector<std::int32_t> allowed_of(const common_cpu_params& params) {
  std::vector<std::int32_t> cpus;
  for (std::int32_t cpu = 0; params.mask_valid && cpu < GGML_MAX_N_THREADS; ++cpu) {
    if (params.cpumask[cpu] && may_use(cpu)) cpus.push_back(cpu);
  }
  return cpus;
}

Error no_cpu(const std::string& flag) {
  return invalid_field(flag, flag + ": this process may use none of these CPUs");
}

// libllama would complain about each thread of each pool anew, past the log.
int permitted(int priority) {
#ifdef __linux__
  constexpr int kRealTime[] = {40, 80, 90};  // as libllama sets them
  if (priority < GGML_SCHED_PRIO_MEDIUM) return priority;
  sched_param wanted{};
  wanted.sched_priority = kRealTime[priority - GGML_SCHED_PRIO_MEDIUM];
  const int policy = ::sched_getscheduler(0);
  sched_param before{};
  ::sched_getparam(0, &before);
  if (::sched_setscheduler(0, SCHED_FIFO, &wanted) == 0) {
    ::sched_setscheduler(0, policy, &before);
    return priority;
  }
  log_warning("--prio has no effect: the system does not let this process raise the priority of its threads",
              {{"reason", std::strerror(errno)}});
  return GGML_SCHED_PRIO_NORMAL;
#else
  return priority;
#endif
}

}  // namespace

std::int32_t default_threads(const LlamaOptionsPtr& options) {
  const std::int32_t cores = default_threads();
  if (!options || !options->params().cpuparams.mask_valid) return cores;
  return std::clamp(static_cast<std::int32_t>(allowed_of(options->params().cpuparams).size()), 1, cores);
}

Result<std::unique_ptr<LlamaThreads>> LlamaThreads::make(const LlamaOptionsPtr& options, std::int32_t polling,
                                                         bool draft) {
  std::unique_ptr<LlamaThreads> threads(new LlamaThreads());
  threads->one_row_.polling = threads->several_rows_.polling = polling;
  if (!options) return threads;
  const common_params& params = options->params();
  Place& one = threads->one_row_;
  Place& several = threads->several_rows_;
  if (auto put = place(params.cpuparams, "--cpu-mask", one); !put) return put.error();
  several = one;
  if (auto put = place(params.cpuparams_batch, "--cpu-mask-batch", several); !put) return put.error();
  if (!draft) return threads;
  const common_params_speculative_draft& own = params.speculative.draft;
  if (auto put = place(own.cpuparams, "--spec-draft-cpu-mask", one); !put) return put.error();
  if (auto put = place(own.cpuparams, "--spec-draft-cpu-mask", several); !put) return put.error();
  if (auto put = place(own.cpuparams_batch, "--spec-draft-cpu-mask-batch", several); !put) return put.error();
  return threads;
}

// What flags say, over what holds without them.
Result<void> LlamaThreads::place(const common_cpu_params& said, const char* flag, Place& out) {
  if (said.mask_valid) {
    out.cpus = allowed_of(said);
    out.strict = said.strict_cpu;
    if (out.cpus.empty()) return no_cpu(flag);
  }
  if (said.strict_cpu) out.strict = true;
  if (said.priority != GGML_SCHED_PRIO_NORMAL) out.priority = permitted(said.priority);
  if (said.poll <= kPollingMost) out.polling = static_cast<std::int32_t>(said.poll);
  return {};
}

LlamaThreads::~LlamaThreads() {
  for (const Pool& pool : pools_) ggml_threadpool_free(pool.pool);
}

ggml_threadpool* LlamaThreads::pool(std::int32_t threads, bool several_rows) {
  const Place& place = several_rows ? several_rows_ : one_row_;
  const auto found =
      std::ranges::find_if(pools_, [&](const Pool& pool) { return pool.threads == threads && pool.place == place; });
  if (found != pools_.end()) return found->pool;
  ggml_threadpool_params params = ggml_threadpool_params_default(threads);
  params.poll = static_cast<std::uint32_t>(place.polling);
  for (const std::int32_t cpu : place.cpus) params.cpumask[cpu] = true;
  params.strict_cpu = place.strict;
  params.prio = static_cast<ggml_sched_priority>(place.priority);
  params.paused = !place.anywhere();  // what wakes it is what puts the thread that decodes in its place
  ggml_threadpool* pool = ggml_threadpool_new(&params);
  CHECK(pool != nullptr, "cannot start the compute threads");
  pools_.push_back({threads, place, pool});
  return pool;
}

void LlamaThreads::expect_another_thread() {
  for (const Pool& pool : pools_) {
    if (!pool.place.anywhere()) ggml_threadpool_pause(pool.pool);
  }
}

KeptPlace::KeptPlace(const LlamaOptionsPtr& options) {
  if (!options) return;
  const auto moves = [](const common_cpu_params& params) {
    return params.mask_valid || params.priority != GGML_SCHED_PRIO_NORMAL;
  };
  if (moves(options->params().cpuparams) || moves(options->params().cpuparams_batch)) {
    saved_ = std::make_unique<Saved>();
  }
}

KeptPlace::~KeptPlace() = default;

}  // namespace chasqui
