#include "app/serve_options.h"

#include <map>

#include "app/demand_options.h"
#include "app/folder_options.h"
#include "app/listener_options.h"
#include "app/llama_flags.h"
#include "app/observability_options.h"
#include "app/option_kinds.h"
#include "app/resume_options.h"
#include "app/scheduling_options.h"

namespace chasqui {
namespace {

// Of checkpoints: closer than this each would cost more than it saves.
std::string checked_distance(const std::string& text) {
  std::int64_t tokens = -1;
  const bool number = CLI::detail::lexical_cast(text, tokens);
  const bool fits = number && (tokens == 0 || (tokens >= 64 && tokens <= 1 << 24));
  return fits ? std::string() : "must be 0, or 64 to 16777216; got " + text;
}

const std::map<std::string, EngineKind> kEngines = {{"llama", EngineKind::llama}, {"sim", EngineKind::sim}};
const std::map<std::string, GrammarEngine> kGrammarEngines = {{"chasqui", GrammarEngine::chasqui},
                                                              {"llama", GrammarEngine::llama}};
const std::map<std::string, SchemaOrder> kSchemaOrders = {{"written", SchemaOrder::written}, {"any", SchemaOrder::any}};
const std::map<std::string, FlashAttention> kFlashAttention = {
    {"auto", FlashAttention::automatic}, {"on", FlashAttention::on}, {"off", FlashAttention::off}};
const std::map<std::string, bool> kFits = {{"on", true}, {"off", false}};
const std::map<std::string, KvType> kKvTypes = [] {
  std::map<std::string, KvType> types;
  for (const KvType type : kv_types()) types.emplace(name(type), type);
  return types;
}();
const std::map<std::string, std::optional<Pooling>> kPoolings = {{"none", Pooling::none},
                                                                 {"mean", Pooling::mean},
                                                                 {"cls", Pooling::cls},
                                                                 {"last", Pooling::last},
                                                                 {"rank", Pooling::rank}};
const std::map<std::string, Wakeup::Kind> kWakeups = {
    {"eventfd", Wakeup::Kind::eventfd}, {"pipe", Wakeup::Kind::pipe}, {"polling", Wakeup::Kind::polling}};
const std::map<std::string, LogLevel> kLogLevels = {{"debug", LogLevel::debug},
                                                    {"info", LogLevel::info},
                                                    {"warning", LogLevel::warning},
                                                    {"error", LogLevel::error},
                                                    {"off", LogLevel::off}};
const std::map<std::string, std::optional<LogFormat>> kLogFormats = {
    {"auto", std::nullopt}, {"text", LogFormat::text}, {"json", LogFormat::json}};

// Which models there are, and what they are called.
void add_name_options(CLI::App& app, ServeConfig& config) {
  app.add_option("-m,--model", config.model_files,
                 "GGUF file to serve, or the name of a model that `chasqui list` shows; without it the built-in demo "
                 "model; again for each model more")
      ->envname("LLAMA_ARG_MODEL")
      ->allow_extra_args(false)
      ->type_name("FILE|NAME");
  app.add_option("--hf-repo", config.hf_repos,
                 "(-hf, -hfr) model in the cache of Hugging Face; nothing is downloaded; again for each model more")
      ->envname("LLAMA_ARG_HF_REPO")
      ->allow_extra_args(false)
      ->type_name("REPO[:QUANT]");
  app.add_option("--hf-file", config.hf_file, "(-hff) … its file, instead of the one that QUANT says")
      ->envname("LLAMA_ARG_HF_FILE")
      ->type_name("FILE");
  app.add_option("-a,--alias", config.model_names,
                 "name that clients see as the model; more names behind commas; again for each --model in its order")
      ->envname("LLAMA_ARG_ALIAS")
      ->allow_extra_args(false)
      ->type_name("NAME");
  app.add_option("--models-preset", config.models_preset,
                 "INI file with a section for each model, and in it flags of that model: see docs/models.md")
      ->envname("LLAMA_ARG_MODELS_PRESET")
      ->type_name("FILE");
  app.add_option("--models-dir", config.models_dir,
                 "folder whose GGUF files are models, and the folders in it: see docs/models.md")
      ->envname("LLAMA_ARG_MODELS_DIR")
      ->type_name("DIR");
  add_demand_options(app, config);
  app.add_flag("--check-model", config.check_model,
               "requests that name a model or an adapter that is not served are refused, as with several models")
      ->envname("CHASQUI_CHECK_MODEL");
  app.add_option("--tags", config.tags, "what /v1/models says of the model as tags, behind commas")
      ->envname("LLAMA_ARG_TAGS")
      ->type_name("TAGS");
}

void add_model_options(CLI::App& app, ServeConfig& config) {
  app.option_defaults()->group("Model");
  add_name_options(app, config);
  add_choice(app, "--engine", config.engine, kEngines, "llama computes; sim answers in word salad without a model")
      ->envname("CHASQUI_ENGINE")
      ->default_str("llama");
  add_choice(app, "--grammar-engine", config.grammar_engine, kGrammarEngines,
             "what keeps answers to grammars and JSON schemas: chasqui's own automaton, or libllama")
      ->envname("CHASQUI_GRAMMAR_ENGINE")
      ->default_str("chasqui");
  add_choice(app, "--schema-order", config.schema_order, kSchemaOrders,
             "properties in an answer by a JSON schema: in its order, or in any (objects of up to eight); schema_order "
             "of a request wins")
      ->envname("CHASQUI_SCHEMA_ORDER")
      ->default_str("written");
  app.add_flag("--forced-tokens,!--no-forced-tokens", config.forced_tokens,
               "whether tokens that a grammar leaves no choice about are appended without being sampled; they are by "
               "default, with --grammar-engine chasqui")
      ->envname("CHASQUI_FORCED_TOKENS");
  app.add_option("--sim-step", config.sim_step_ms,
                 "what a step of --engine sim takes, whatever is in it (as a small model)")
      ->envname("CHASQUI_SIM_STEP")
      ->check(CLI::Range(0.0, 10000.0))
      ->type_name("MS");
  app.add_option("--gpu-layers", config.gpu_layers, "(-ngl) layers to keep on the GPU; -1: all that fit")
      ->envname("LLAMA_ARG_N_GPU_LAYERS")
      ->check(CLI::Range(-1, 100000))
      ->type_name("N");
  app.add_flag("--rpc-public", config.rpc_public,
               "servers of --rpc may have addresses that are not private; see docs/rpc.md")
      ->envname("CHASQUI_RPC_PUBLIC");
  app.add_option("--chat-template-file", config.chat_template_file, "Jinja template instead of the model's own")
      ->envname("LLAMA_ARG_CHAT_TEMPLATE_FILE")
      ->type_name("FILE");
  add_choice(app, "--pooling", config.pooling, kPoolings,
             "what the vectors of an input's tokens become in embeddings; mean, unless the model says otherwise")
      ->envname("LLAMA_ARG_POOLING");
  app.add_flag_callback(
         "--rerank,--reranking", [&config] { config.pooling = Pooling::rank; }, "the same as --pooling rank")
      ->envname("LLAMA_ARG_RERANKING");
  app.add_flag_callback(
         "--embeddings,--embedding", [] {}, "nothing: every server has embeddings, beside generation")
      ->envname("LLAMA_ARG_EMBEDDINGS");
  add_off_flag(app, "--no-mmap", config.use_mmap, "read the file instead of mapping it")->envname("LLAMA_ARG_NO_MMAP");
  app.add_flag("--mlock", config.use_mlock, "keep the weights from being swapped out")->envname("LLAMA_ARG_MLOCK");
}

void add_cache_options(CLI::App& app, ServeConfig& config) {
  app.option_defaults()->group("Prefix cache");
  app.add_option("--cache-ram", config.cache_ram,
                 "MiB of host memory for prompts and answers that may come again, at most a quarter of what there is; "
                 "-1: no limit, 0: nothing is kept")
      ->envname("LLAMA_ARG_CACHE_RAM")
      ->check(CLI::Range(std::int64_t{-1}, std::int64_t{1} << 30))
      ->type_name("MIB");
  app.add_flag("--cache-prompt,!--no-cache-prompt", config.cache_prompt,
               "whether requests that do not say use the cache; they do by default")
      ->default_str("true")
      ->envname("LLAMA_ARG_CACHE_PROMPT");
  app.add_option(
         "--cache-reuse", config.cache_reuse,
         "texts of so many tokens that have moved up since they were computed are not computed again; 0: they are")
      ->envname("LLAMA_ARG_CACHE_REUSE")
      ->check(CLI::Range(0, 1 << 30))
      ->type_name("N");
  app.add_flag("--cache-shared", config.cache_shared,
               "tenants share what is cached; by its speed each can tell what others have asked")
      ->envname("CHASQUI_CACHE_SHARED");
  app.add_option(
         "--checkpoint-every", config.checkpoint_every,
         "tokens between checkpoints of a long prompt, for models whose memory cannot be cut; 0: no checkpoints")
      ->envname("CHASQUI_CHECKPOINT_EVERY")
      ->check(CLI::Validator(checked_distance, "0 or 64 to 16777216"))
      ->type_name("N");
  app.add_option("--ctx-checkpoints,--swa-checkpoints", config.checkpoints_max,
                 "(-ctxcp) … of one prompt at most; 0: none, not at the parts of chats either")
      ->envname("LLAMA_ARG_CTX_CHECKPOINTS")
      ->check(CLI::Range(0, 4096))
      ->type_name("N");
  app.add_option("--checkpoint-min-step", config.checkpoint_least, "(-cms) … and tokens between two of them at least")
      ->envname("LLAMA_ARG_CHECKPOINT_MIN_SPACING_NT")
      ->check(CLI::Range(0, 1 << 24))
      ->type_name("N");
}

void add_session_options(CLI::App& app, ServeConfig& config) {
  app.option_defaults()->group("Sessions");
  add_seconds(app, "--session-ttl", config.session_ttl, "how long an unused session is kept")
      ->envname("CHASQUI_SESSION_TTL")
      ->check(CLI::Range(1.0, 86400.0))
      ->default_str("3600");
  app.add_option("--sessions-max", config.sessions_max, "sessions that may be open at once")
      ->envname("CHASQUI_SESSIONS_MAX")
      ->check(CLI::Range(0, 1 << 20))
      ->type_name("N");
  app.add_option("--tenant-sessions", config.tenant_sessions,
                 "sessions of one tenant; 0: no limit; without keys there is none unless set")
      ->envname("CHASQUI_TENANT_SESSIONS")
      ->check(CLI::Range(0, 1 << 20))
      ->type_name("N")
      ->default_str("a quarter of --sessions-max");
}

void add_log_options(CLI::App& app, ServeConfig& config) {
  app.option_defaults()->group("Operation");
  add_choice(app, "--log-level", config.log_level, kLogLevels, "least important lines to log")
      ->envname("CHASQUI_LOG_LEVEL")
      ->default_str("info");
  add_choice(app, "--log-format", config.log_format, kLogFormats,
             "format of log lines; auto: text on a terminal, JSON in a file or a pipe")
      ->envname("CHASQUI_LOG_FORMAT")
      ->default_str("auto");
  app.add_option("--log-file", config.log_file,
                 "file that the log is added to, instead of standard error; SIGHUP opens it again")
      ->envname("LLAMA_ARG_LOG_FILE")
      ->type_name("FILE");
  add_choice(app, "--wakeup", config.wakeup, kWakeups, "how the worker wakes the loop; the best one by default")
      ->envname("CHASQUI_WAKEUP")
      ->default_str("eventfd");
}

// How KV cells are laid out.
void add_cell_options(CLI::App& app, ModelConfig& model) {
  add_choice(app, "--cache-type-k", model.kv_keys, kKvTypes, "(-ctk) format of the keys in the KV cache")
      ->envname("LLAMA_ARG_CACHE_TYPE_K")
      ->default_str("f16");
  add_choice(app, "--cache-type-v", model.kv_values, kKvTypes, "(-ctv) format of the values in the KV cache")
      ->envname("LLAMA_ARG_CACHE_TYPE_V")
      ->default_str("f16");
  app.add_flag("--swa-full", model.swa_full, "layers with a sliding window get cells for the whole context, too")
      ->envname("LLAMA_ARG_SWA_FULL");
  app.add_flag("--kv-unified", model.unified, "(-kvu) one pool of cells for all slots instead of a stream each")
      ->envname("LLAMA_ARG_KV_UNIFIED");
  app.add_option("--kv-unified-per-slot", model.cells_per_slot_max,
                 "most tokens of one request; with --kv-unified and without --ctx-size also the cells for each slot")
      ->envname("LLAMA_ARG_KV_UNIFIED_PER_SLOT")
      ->check(CLI::Range(2, 1 << 28))
      ->type_name("N")
      ->default_str("as many as there are cells");
}

// How many cells there are where that is not said.
void add_fit_options(CLI::App& app, ServeConfig& config) {
  add_choice(app, "--fit", config.fit, kFits, "(-fit) off: --ctx-size must be given; on: it is chosen where it is not")
      ->envname("LLAMA_ARG_FIT")
      ->default_str("on");
  app.add_option("--fit-target", config.fit_target_mib,
                 "(-fitt) MiB of memory that cells leave free where --ctx-size does not say how many there are")
      ->envname("LLAMA_ARG_FIT_TARGET")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 30))
      ->type_name("MIB")
      ->default_str("half of what is free");
  app.add_option("--fit-ctx", config.model.cells_least, "(-fitc) … and cells of a slot that there are at least")
      ->envname("LLAMA_ARG_FIT_CTX")
      ->check(CLI::Range(2, 1 << 28))
      ->type_name("N")
      ->default_str("4096");
}

}  // namespace

void add_context_options(CLI::App& app, ServeConfig& config) {
  app.option_defaults()->group("Context and speed");
  ModelConfig& model = config.model;
  app.add_option("--workers", config.workers,
                 "contexts that share the model, each with its part of slots, cells and cores: see docs/workers.md")
      ->envname("CHASQUI_WORKERS")
      ->check(CLI::Range(1, 64))
      ->type_name("N");
  app.add_option("-c,--ctx-size", model.cells, "KV cells of all slots together; 0: chosen from the model")
      ->envname("LLAMA_ARG_CTX_SIZE")
      ->check(CLI::Range(0, 1 << 28))
      ->type_name("N");
  add_fit_options(app, config);
  app.add_option("--parallel", model.slots, "(-np) sequences at once, 1 to 256; 0: chosen from the model")
      ->envname("LLAMA_ARG_N_PARALLEL")
      ->check(CLI::Range(0, 256))
      ->type_name("N");
  app.add_option("-b,--batch-size", model.rows_max, "rows of one batch")
      ->envname("LLAMA_ARG_BATCH")
      ->check(CLI::Range(1, 1 << 16))
      ->type_name("N");
  app.add_option("--ubatch-size", model.rows_max, "(-ub) the same: a batch is computed in one piece")
      ->envname("LLAMA_ARG_UBATCH")
      ->check(CLI::Range(1, 1 << 16))
      ->type_name("N");
  app.add_option("-t,--threads", model.threads, "compute threads of each worker for one row; 0: its part of the cores")
      ->envname("LLAMA_ARG_THREADS")
      ->check(CLI::Range(0, 512))
      ->type_name("N");
  app.add_option("--threads-batch", model.threads_batch,
                 "(-tb) compute threads for more rows; 0: as --threads, or its part of the cores where that is 0")
      ->envname("LLAMA_ARG_THREADS_BATCH")
      ->check(CLI::Range(0, 512))
      ->type_name("N");
  app.add_option("--poll", model.polling, "how long idle compute threads spin, 0 to 100")
      ->envname("LLAMA_ARG_POLL")
      ->check(CLI::Range(0, 100))
      ->type_name("N");
  add_choice(app, "--flash-attn", model.flash_attention, kFlashAttention, "(-fa) flash attention")
      ->envname("LLAMA_ARG_FLASH_ATTN")
      ->default_str("auto");
  add_cell_options(app, model);
  add_off_flag(app, "--fixed-threads", model.adapt_threads, "always use --threads, even while fewer would be faster")
      ->envname("CHASQUI_FIXED_THREADS");
  add_off_flag(app, "--no-warmup", model.warm_up, "do not compute once before the first request")
      ->envname("LLAMA_ARG_NO_WARMUP");
}

void add_serve_options(CLI::App& app, ServeConfig& config) {
  config.model.slots = 0;
  app.set_help_flag("-h,--help,--usage", "Print this help message and exit");
  app.set_version_flag("--version", std::string("chasqui ") + CHASQUI_VERSION);
  add_model_options(app, config);
  add_context_options(app, config);
  add_cache_options(app, config);
  add_adapter_options(app, config.adapters);
  add_media_options(app, config.media);
  add_session_options(app, config);
  add_folder_options(app, config);
  add_shared_store_options(app, config.shared);
  add_listener_options(app, config);
  add_web_options(app, config.web);
  add_speculation_options(app, config.speculation);
  add_resume_options(app, config);
  add_scheduling_options(app, config);
  add_limit_options(app, config);
  add_log_options(app, config);
  add_watching_options(app, config);
  add_operation_options(app, config.operation);
  accept_llama_words(app);
  // What is not written into the help of its own accord.
  for (CLI::Option* option : app.get_options()) {
    if (option->get_default_str().empty()) option->capture_default_str();
  }
  app.add_option("--config", "TOML file with any of these settings; environment and flags are stronger")
      ->envname("CHASQUI_CONFIG")
      ->type_name("FILE")
      ->group("Operation");
}

}  // namespace chasqui
