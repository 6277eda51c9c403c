// The tables of llama-server's flags that are no options of ours, see llama_flags.h: those that come to nothing here,
// are written otherwise, or refused, with the older names that people still write; and those that llama-common reads.
#include "app/llama_flags.h"

namespace chasqui {
namespace {

constexpr FlagFate kTaken = FlagFate::taken;
constexpr FlagFate kRefused = FlagFate::refused;
constexpr FlagFate kWritten = FlagFate::written;

constexpr std::string_view kDownload =
    "the server downloads nothing; download the file and name it with --model FILE, or see chasqui pull";
constexpr std::string_view kLookup =
    "files of n-grams are not read; --spec-type ngram finds them in what was said before, see docs/speculation.md";
constexpr std::string_view kAlways = "it is always so";
constexpr std::string_view kDraft =
    "how many tokens are drafted follows from how many are accepted; leave the flag out";
constexpr std::string_view kVideo = "there is no video";
constexpr std::string_view kPage = "it is for the page of llama-server";
constexpr std::string_view kTools = "the server runs no tools; the client does, with \"tools\" in its requests";
constexpr std::string_view kLogs = "logs go to standard error: see --log-level and --log-format";
constexpr std::string_view kBuiltIn = "name a file with --model FILE";

constexpr LlamaFlag kFlags[] = {
    {"--perf --no-perf", "LLAMA_ARG_PERF", 0, kTaken, "/metrics has the times"},
    {"-dt --defrag-thold", "LLAMA_ARG_DEFRAG_THOLD", 1, kTaken, "there is nothing to defragment"},
    {"--mmap", "LLAMA_ARG_MMAP", 0, kWritten, "--no-mmap=false"},
    {"-dio --direct-io", "LLAMA_ARG_DIO", 0, kWritten, "--load-mode dio"},
    {"-ndio --no-direct-io", "", 0, kTaken, "it is so without --load-mode dio"},
    {"--list-devices", "", 0, kRefused, "the log of a start names the devices"},
    {"-cl --cache-list", "", 0, kRefused, "see chasqui list"},
    {"--completion-bash", "", 0, kRefused, "see chasqui --help"},
    {"-mu --model-url", "LLAMA_ARG_MODEL_URL", 1, kRefused, kDownload},
    {"-dr --docker-repo", "LLAMA_ARG_DOCKER_REPO", 1, kRefused, kDownload},
    {"-hft --hf-token", "", 1, kTaken, "the server downloads nothing; chasqui pull has the same flag"},
    {"--offline", "LLAMA_ARG_OFFLINE", 0, kTaken, kAlways},
    {"--log-disable", "", 0, kWritten, "--log-level off"},
    {"-v --verbose --log-verbose", "", 0, kWritten, "--log-level debug"},
    {"--log-jsonl", "LLAMA_ARG_LOG_JSONL", 0, kWritten, "--log-format json"},
    {"--no-log-jsonl", "", 0, kWritten, "--log-format text"},
    {"--log-colors", "LLAMA_ARG_LOG_COLORS", 1, kTaken, kLogs},
    {"-lv --verbosity --log-verbosity", "LLAMA_ARG_LOG_VERBOSITY", 1, kWritten, "--log-level %"},
    {"--log-prefix --no-log-prefix", "LLAMA_ARG_LOG_PREFIX", 0, kTaken, kLogs},
    {"--log-timestamps --no-log-timestamps", "LLAMA_ARG_LOG_TIMESTAMPS", 0, kTaken, kLogs},
    {"--log-prompts-dir", "", 1, kRefused, "prompts are never logged; log them in a proxy"},
    {"-bs --backend-sampling", "LLAMA_ARG_BACKEND_SAMPLING", 0, kRefused,
     "tokens are drawn by the CPU, whatever computes the model; leave the flag out"},
    {"-no-kvu --no-kv-unified", "", 0, kWritten, "--kv-unified=false"},
    {"--cache-idle-slots --no-cache-idle-slots", "LLAMA_ARG_CACHE_IDLE_SLOTS", 0, kTaken,
     "what a slot holds is copied out when the slot is needed, within --cache-ram"},
    {"-sps --slot-prompt-similarity", "", 1, kTaken,
     "a prompt goes on from the longest beginning that is kept, in whichever slot"},
    {"--warmup", "LLAMA_ARG_WARMUP", 0, kWritten, "--no-warmup=false"},
    {"-cb --cont-batching", "LLAMA_ARG_CONT_BATCHING", 0, kTaken, kAlways},
    {"-nocb --no-cont-batching", "", 0, kRefused, "requests share steps always; --parallel 1 serves one at a time"},
    {"-mmu --mmproj-url", "LLAMA_ARG_MMPROJ_URL", 1, kRefused, kDownload},
    {"-mmdev --mmproj-device", "MTMD_BACKEND_DEVICE", 1, kRefused,
     "pictures are encoded by the first GPU, or with --no-mmproj-offload by the CPU"},
    {"--mtmd-batch-max-tokens", "LLAMA_ARG_MTMD_BATCH_MAX_TOKENS", 1, kTaken, "pictures are encoded one at a time"},
    {"--video-fps", "LLAMA_ARG_VIDEO_FPS", 1, kTaken, kVideo},
    {"--video-timestamp-interval", "LLAMA_ARG_VIDEO_TIMESTAMP_INTERVAL", 1, kTaken, kVideo},
    {"--video-ffmpeg-dir", "LLAMA_ARG_VIDEO_FFMPEG_DIR", 1, kTaken, kVideo},
    {"--reuse-port", "LLAMA_ARG_REUSE_PORT", 0, kRefused, "start one server, with --workers for more contexts"},
    {"--path", "LLAMA_ARG_STATIC_PATH", 1, kRefused, "serve files with a web server in front"},
    {"--ui-config --webui-config", "LLAMA_ARG_UI_CONFIG", 1, kTaken, kPage},
    {"--ui-config-file --webui-config-file", "LLAMA_ARG_UI_CONFIG_FILE", 1, kTaken, kPage},
    {"--ui --webui", "LLAMA_ARG_UI", 0, kWritten, "--no-webui=false"},
    {"--no-ui", "", 0, kWritten, "--no-webui"},
    {"--ui-mcp-proxy --webui-mcp-proxy", "LLAMA_ARG_UI_MCP_PROXY", 0, kRefused, kTools},
    {"--no-ui-mcp-proxy --no-webui-mcp-proxy", "", 0, kTaken, kAlways},
    {"--tools", "LLAMA_ARG_TOOLS", 1, kRefused, kTools},
    {"--tools-runtime", "LLAMA_ARG_TOOLS_RUNTIME", 1, kRefused, kTools},
    {"--mcp-servers-config", "LLAMA_ARG_MCP_SERVERS_CONFIG", 1, kRefused, kTools},
    {"--mcp-servers-json", "LLAMA_ARG_MCP_SERVERS_JSON", 1, kRefused, kTools},
    {"-ag --agent", "LLAMA_ARG_AGENT", 0, kRefused, kTools},
    {"-no-ag --no-agent", "", 0, kTaken, kAlways},
    {"--threads-http", "LLAMA_ARG_THREADS_HTTP", 1, kTaken, "one thread serves all connections"},
    {"--metrics", "LLAMA_ARG_ENDPOINT_METRICS", 0, kTaken, kAlways},
    {"--props", "LLAMA_ARG_ENDPOINT_PROPS", 0, kTaken, "properties are set on the command line only"},
    {"--jinja", "LLAMA_ARG_JINJA", 0, kTaken, kAlways},
    {"--no-jinja", "", 0, kRefused, "templates are always Jinja; write other ones with --chat-template-file FILE"},
    {"--spec-synth-len", "LLAMA_ARG_SPEC_SYNTH_LEN", 1, kRefused, "write the rates: --spec-synth-rates P,P,…"},
    {"--spec-draft-p-split --draft-p-split", "LLAMA_ARG_SPEC_DRAFT_P_SPLIT", 1, kTaken,
     "drafts have no branches, in llama-server neither"},
    {"--spec-draft-p-min --draft-p-min", "LLAMA_ARG_SPEC_DRAFT_P_MIN", 1, kTaken,
     "a step checks as many draft tokens as pay, measured by how many were accepted: see docs/speculation.md"},
    {"--spec-draft-backend-sampling", "LLAMA_ARG_SPEC_DRAFT_BACKEND_SAMPLING", 0, kRefused,
     "draft tokens are drawn by the CPU, whatever computes the draft model; leave the flag out"},
    {"--no-spec-draft-backend-sampling", "", 0, kTaken, kAlways},
    {"-lcs --lookup-cache-static", "", 1, kRefused, kLookup},
    {"-lcd --lookup-cache-dynamic", "", 1, kRefused, kLookup},
    {"-cd --ctx-size-draft", "LLAMA_ARG_CTX_SIZE_DRAFT", 1, kRefused,
     "a draft model has as many cells as the model; leave the flag out, and give --ctx-size less"},
    {"--spec-default", "", 0, kWritten, "--spec-type ngram"},
    {"--draft --draft-n", "LLAMA_ARG_DRAFT_MAX", 1, kWritten, "--spec-draft-n-max %"},
    {"--draft-n-min", "LLAMA_ARG_DRAFT_MIN", 1, kWritten, "--spec-draft-n-min %"},
    {"--spec-ngram-mod-n-match --spec-ngram-simple-size-n --spec-ngram-map-k-size-n --spec-ngram-map-k4v-size-n "
     "--spec-ngram-size-n",
     "", 1, kWritten, "--spec-ngram-size %"},
    {"--spec-ngram-mod-n-max --spec-ngram-simple-size-m --spec-ngram-map-k-size-m --spec-ngram-map-k4v-size-m "
     "--spec-ngram-size-m",
     "", 1, kWritten, "--spec-draft-n-max %"},
    {"--spec-ngram-mod-n-min", "", 1, kTaken, "what followed n-grams is drafted up to --spec-draft-n-max, never less"},
    {"--spec-ngram-simple-min-hits --spec-ngram-map-k-min-hits --spec-ngram-map-k4v-min-hits --spec-ngram-min-hits", "",
     1, kRefused, kDraft},
    {"--embd-gemma-default --fim-qwen-1.5b-default --fim-qwen-3b-default --fim-qwen-7b-default --fim-qwen-7b-spec "
     "--fim-qwen-14b-spec --fim-qwen-30b-default --gpt-oss-20b-default --gpt-oss-120b-default "
     "--vision-gemma-4b-default --vision-gemma-12b-default",
     "", 0, kRefused, kBuiltIn},
};

constexpr AppliedFlags kAppliedFlags[] = {
    {"--samplers --seed --sampling-seq --temp --top-k --top-p --min-p --top-n-sigma --xtc-probability --xtc-threshold "
     "--typical-p --repeat-last-n --repeat-penalty --presence-penalty --frequency-penalty --dry-multiplier --dry-base "
     "--dry-allowed-length --dry-penalty-last-n --dry-sequence-breaker --adaptive-target --adaptive-decay "
     "--dynatemp-range --dynatemp-exp --mirostat --mirostat-lr --mirostat-ent --logit-bias --reverse-prompt --escape "
     "--ignore-eos --special --embd-normalize --grammar --grammar-file --json-schema --json-schema-file --spm-infill",
     "requests that do not say"},
    {"--chat-template-kwargs --reasoning-format --reasoning --reasoning-effort --reasoning-budget "
     "--reasoning-budget-message --reasoning-preserve --skip-chat-parsing --prefill-assistant",
     "chats that do not say"},
    {"--chat-template", "the template"},
    {"--rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-orig-ctx --yarn-ext-factor "
     "--yarn-attn-factor --yarn-beta-slow --yarn-beta-fast --kv-offload --op-offload",
     "libllama's contexts"},
    {"--repack --no-host --load-mode --lazy-mode --device --override-tensor --cpu-moe --n-cpu-moe --n-cpu-ffn "
     "--split-mode --tensor-split --main-gpu --check-tensors --override-kv --numa --control-vector "
     "--control-vector-scaled --control-vector-layer-range",
     "libllama's model"},
    {"--rpc", "devices: other machines' come beside this one's, see docs/rpc.md"},
    {"--spec-draft-override-tensor --spec-draft-cpu-moe --spec-draft-n-cpu-moe --spec-draft-type-k --spec-draft-type-v "
     "--spec-draft-device --spec-draft-ngl",
     "the draft model"},
    {"--cpu-mask --cpu-range --cpu-strict --prio --cpu-mask-batch --cpu-range-batch --cpu-strict-batch --prio-batch "
     "--poll-batch",
     "compute threads"},
    {"--spec-draft-threads --spec-draft-threads-batch --spec-draft-cpu-mask --spec-draft-cpu-range "
     "--spec-draft-cpu-strict --spec-draft-prio --spec-draft-poll --spec-draft-cpu-mask-batch "
     "--spec-draft-cpu-strict-batch --spec-draft-prio-batch --spec-draft-poll-batch",
     "compute threads of the draft model"},
};

}  // namespace

std::span<const LlamaFlag> llama_flags() { return kFlags; }
std::span<const AppliedFlags> applied_flags() { return kAppliedFlags; }

}  // namespace chasqui
