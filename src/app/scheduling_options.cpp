#include "app/scheduling_options.h"

#include "app/option_kinds.h"

namespace chasqui {
namespace {

// One number of seconds for all classes, or one for each.
CLI::Option* add_waits(CLI::App& app, ServeConfig& config) {
  return app
      .add_option_function<std::vector<double>>(
          "--queue-wait",
          [&config](const std::vector<double>& waits) {
            if (waits.size() != 1 && waits.size() != kServiceClasses) {
              throw CLI::ValidationError("--queue-wait", "takes one number of seconds, or one for each of 3 classes");
            }
            config.queue_wait.resize(kServiceClasses);
            for (std::size_t c = 0; c < kServiceClasses; ++c) {
              config.queue_wait[c] = from_seconds(waits.size() == 1 ? waits[0] : waits[c]);
            }
          },
          "longest forecast wait for a first token, for all classes or for each; a request over it is refused, a new "
          "one over two thirds of it; 0: none is")
      ->delimiter(',')
      ->expected(1, static_cast<int>(kServiceClasses))
      ->check(CLI::Range(0.0, 86400.0))
      ->type_name("SECONDS[,S,S]");
}

// One number of milliseconds for each class, most urgent first.
CLI::Option* add_class_times(CLI::App& app, const std::string& name, SchedulerTargets& targets,
                             Duration ClassTarget::*time, const std::string& help) {
  std::string standing;
  for (const ClassTarget& target : targets.of) {
    const auto ms = std::chrono::duration_cast<milliseconds>(target.*time).count();
    standing += (standing.empty() ? "" : ",") + std::to_string(ms);
  }
  return app
      .add_option_function<std::vector<std::int64_t>>(
          name,
          [&targets, time](const std::vector<std::int64_t>& times) {
            for (std::size_t c = 0; c < times.size(); ++c) targets.of[c].*time = milliseconds(times[c]);
          },
          help)
      ->delimiter(',')
      ->expected(static_cast<int>(kServiceClasses))
      ->check(CLI::Range(1, 3'600'000))
      ->type_name("MS,MS,MS")
      ->default_str(standing);
}

}  // namespace

void add_limit_options(CLI::App& app, ServeConfig& config) {
  app.option_defaults()->group("Limits");
  app.add_option("-n,--predict", config.predict, "tokens of an answer when a request does not say; -1: no limit")
      ->envname("LLAMA_ARG_N_PREDICT")
      ->check(CLI::Range(-1, 1 << 30))
      ->type_name("N");
  app.add_flag(
         "--context-shift,!--no-context-shift", config.context_shift,
         "an answer whose context is full goes on: tokens behind those of --keep are taken out; else it ends there")
      ->envname("LLAMA_ARG_CONTEXT_SHIFT");
  app.add_option("--keep", config.keep, "tokens of the prompt that stay then when a request does not say; -1: all")
      ->envname("CHASQUI_KEEP")
      ->check(CLI::Range(-1, 1 << 30))
      ->type_name("N");
  app.add_option("--queue-requests", config.queue_requests, "requests that may wait for a slot")
      ->envname("CHASQUI_QUEUE_REQUESTS")
      ->check(CLI::Range(0, 100000))
      ->type_name("N");
  app.add_option("--queue-tokens", config.queue_tokens, "prompt tokens that may wait; 0: no limit")
      ->envname("CHASQUI_QUEUE_TOKENS")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40))
      ->type_name("N");
  add_waits(app, config)->envname("CHASQUI_QUEUE_WAIT")->default_str("0");
  add_seconds(app, "--queue-timeout", config.queue_timeout, "how long a request may wait for a slot; 0: no limit")
      ->envname("CHASQUI_QUEUE_TIMEOUT")
      ->default_str("600");
  app.add_option("--tenant-requests", config.tenant_requests,
                 "requests in flight of one tenant; 0: no limit; where there is one tenant there is none unless set")
      ->envname("CHASQUI_TENANT_REQUESTS")
      ->check(CLI::Range(0, 100000))
      ->type_name("N")
      ->default_str("64");
  add_seconds(app, "--request-timeout", config.request_timeout, "time for a whole request; 0: none")
      ->envname("CHASQUI_REQUEST_TIMEOUT")
      ->default_str("0");
  app.add_option_function<double>(
         "--sse-ping-interval",
         [&config](double s) {
           config.ping_every = from_seconds(std::max(s, 0.0));
         },
         "silence after which a stream gets a comment; -1: none")
      ->envname("LLAMA_ARG_SSE_PING_INTERVAL")
      ->check(CLI::Range(-1.0, 86400.0))
      ->type_name("SECONDS")
      ->default_str("5");
  add_seconds(app, "--timeout", config.write_timeout, "(-to) how long a client may take no byte of its answer")
      ->envname("LLAMA_ARG_TIMEOUT")
      ->default_str("30");
  add_seconds(app, "--drain-time", config.drain_time, "how long running requests may go on after SIGTERM")
      ->envname("CHASQUI_DRAIN_TIME")
      ->default_str("30");
}

void add_scheduling_options(CLI::App& app, ServeConfig& config) {
  app.option_defaults()->group("Scheduling");
  add_class_times(app, "--ttft-target", config.targets, &ClassTarget::first_token,
                  "time to the first token that interactive, standard, background requests should see")
      ->envname("CHASQUI_TTFT_TARGET");
  add_class_times(app, "--itl-target", config.targets, &ClassTarget::next_token,
                  "time between tokens that they should see while others' prompts are prefilled")
      ->envname("CHASQUI_ITL_TARGET");
  app.add_option_function<std::int64_t>(
         "--prefill-step", [&config](std::int64_t ms) { config.targets.prefill_step = milliseconds(ms); },
         "longest step that only prefills, but at least four passes over the weights; 0: as the streams "
         "beside it allow, or a micro-batch (512 rows) where there are none")
      ->envname("CHASQUI_PREFILL_STEP")
      ->check(CLI::Range(0, 60'000))
      ->type_name("MS")
      ->default_str("0");
  add_choice(app, "--policy", config.policy, slot_policies(),
             "who goes first; fcfs (who came first) is for comparisons")
      ->envname("CHASQUI_POLICY")
      ->default_str("fair");
}

}  // namespace chasqui
