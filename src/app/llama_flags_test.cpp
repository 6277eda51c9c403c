#include "app/llama_flags.h"

#include <cstring>
#include <fstream>
#include <regex>
#include <sstream>

#include <gtest/gtest.h>

#include "app/config.h"
#include "app/llama_flags_document.h"
#include "app/serve_options.h"

namespace chasqui {
namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool any = false;
  char quote = 0;
  for (const char c : line) {
    if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      any = true;
    } else if (c == ' ') {
      if (any || !word.empty()) words.push_back(std::exchange(word, ""));
      any = false;
    } else {
      word += c;
    }
  }
  if (any || !word.empty()) words.push_back(word);
  return words;
}

struct Read {
  CommandLine line;
  std::string errors;
};

Read read(const std::string& line) {
  std::vector<std::string> words = words_of(line);
  std::vector<const char*> argv = {"chasqui", "serve"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  testing::internal::CaptureStderr();
  CommandLine result = read_command_line(static_cast<int>(argv.size()), argv.data());
  return {std::move(result), testing::internal::GetCapturedStderr()};
}

// What follows `llama-server` in READMEs, guides and bug reports; models and folders have other names.
struct Real {
  const char* line;
  const char* refusal;  // null: it starts
};

const Real kReal[] = {
    {"-m model.gguf", nullptr},
    {"-m models/7B/ggml-model.gguf -c 2048", nullptr},
    {"-m model.gguf --port 8080", nullptr},
    {"-m model.gguf --host 0.0.0.0 --port 9090 -c 4096", nullptr},
    {"-m model.gguf -c 16384 -np 4", nullptr},
    {"--model /models/m.gguf --host 0.0.0.0 --port 8012 --api-key your-secret-key", nullptr},
    {"-m m.gguf --port 8080 --n-gpu-layers 1000", nullptr},
    {"--model models/m-q4.gguf --ctx-size 256 --threads 1 --port 11434", nullptr},
    {"-m /models/m.gguf -c 512 --host 0.0.0.0 --port 8080 --n-predict 2048 -ngl 99", nullptr},
    {"-fa on --host 0.0.0.0 -a default_model --port 8087 -m m-Q8_0.gguf --no-mmap --jinja -c 128000 -b 1024", nullptr},
    {"-m m.gguf -ngl 99 -c 32768 --ubatch-size 128", nullptr},
    {"-m m.gguf -md draft-model.gguf -c 10000", nullptr},
    {"-m m.gguf -md draft-model.gguf -cd 100 -c 10000", "-cd .*--ctx-size"},
    {"-m m.gguf --spec-type ngram-mod --spec-ngram-mod-n-match 24 --spec-ngram-mod-n-min 48 --spec-ngram-mod-n-max 64",
     nullptr},
    {"-m m.gguf -c 4096 --fit off -ngl 99", nullptr},
    {"-m m.gguf -bs", "-bs .*CPU"},
    {"-m m.gguf -nocb", "-nocb .*--parallel 1"},
    {"-m m.gguf --spec-synth-len 2.5", "--spec-synth-len .*--spec-synth-rates"},
    {"-m m.gguf -md m-eagle3.gguf --spec-type draft-eagle3", nullptr},
    {"-m a.gguf -md b.gguf --spec-type draft-dflash --spec-draft-n-max 15 -ngl 99 -ngld 99 -fa", nullptr},
    {"--model s-00001-of-00003.gguf --alias step --fit on --prio 3 --temp 1.0 --top-p 0.95 --ctx-size 196608 --host "
     "0.0.0.0 --port 8001 --jinja --cache-prompt --batch-size 30720 --threads 32 --threads-batch 64 --flash-attn auto "
     "--parallel 1 --cache-ram -1 --chat-template-file /tmp/t.jinja",
     nullptr},
    {"-m m.gguf --port 8090 --ctx-size 262144 --flash-attn on --no-mmap --temp 1 --top-p 0.95 --top-k 40 --min-p 0.01 "
     "--presence-penalty 0.0 --repeat-penalty 1.0 --frequency-penalty 0.0 --batch-size 2048 --ubatch-size 2048 "
     "--parallel 4 --cache-ram -1 --cache-type-k f16 --cache-type-v f16 --threads -1 --seed -1 -dio --no-webui "
     "--metrics",
     nullptr},
    {"-m m.gguf -c 32768 -t 5 -fa on --prio-batch 2 -ub 2048 -b 2048 -ctk q8_0 -ctv q8_0 -ngl 999 "
     "-ot 'blk.1\\.ffn_.*_exps\\.=CPU,blk.2\\.ffn_.*_exps\\.=CPU' --cpu-moe --no-context-shift --no-mmap",
     nullptr},
    {"--model q.gguf --threads -1 --n-gpu-layers 99 -ot '.ffn_.*_exps.=CPU' --ctx-size 16384 --temp 0.7 --min-p 0.0 "
     "--top-p 0.8 --top-k 20 --repeat-penalty 1.05",
     nullptr},
    {"-m m.gguf -ngl all -c 0 -fa on --jinja --reasoning-format none -ncmoe 28 -ub 4096 -b 4096", nullptr},
    {"-m m.gguf --chat-template-kwargs '{\"reasoning_effort\":\"high\"}' -np 1 -a glimmer --jinja", nullptr},
    {"-m m.gguf -fa -nkvo -c 163840 -ngl 0 -np 4 --mlock -a r1:671b -s 3047 -t 62 --temp 0.6", nullptr},
    {"-m m.gguf -c 8192 -cb -np 8 --slots --log-disable -v", nullptr},
    {"-m m.gguf --ctx-size 65536 -kvu --cache-reuse 256 --swa-full -sm layer -ts 3,1 -mg 0", nullptr},
    {"-m m.gguf --numa distribute -t 32 --mlock --no-warmup --threads-http 8 --timeout 600", nullptr},
    {"-m m.gguf --port=8033 --ctx-size=8192 --n-gpu-layers=99 --no-slots --verbosity 4", nullptr},
    {"-m m.gguf -c 4096 --draft-max 16 --draft-min 5 --draft-p-min 0.9 -devd none", nullptr},
    {"-m m.gguf -md d.gguf -devd NOWHERE", "-devd|--spec-draft-device"},
    {"-m m.gguf -md d.gguf -ctkd q8_0 -ctvd q8_0 -td 4 -tbd 4 -ngld 99 --poll-draft 0", nullptr},
    {"-m m.gguf --context-shift --keep 64", nullptr},
    {"-m m.gguf --no-jinja", "--no-jinja .*--chat-template-file"},
    {"-m m.gguf -ctxcp 32 -cms 256 -fitt 1024 -fitc 8192 -kvu --kv-unified-per-slot 4096 -lv 4", nullptr},
    {"-m m.gguf --poll-batch 101", "--poll-batch"},
    {"-m m.gguf --host /run/llm.sock --reasoning-budget 0 --no-prefill-assistant", nullptr},
    {"-m m.gguf --log-file server.log --log-timestamps --log-prefix --keep -1", nullptr},
    {"-hf ggml-org/gemma-3-4b-it-GGUF", nullptr},
    {"-hf ggml-org/gemma-3-4b-it-qat-GGUF -c 131072 -fa on --port 8080", nullptr},
    {"--jinja -fa -hf bartowski/Mistral-Nemo-Instruct-2407-GGUF:Q6_K_L", nullptr},
    {"--jinja -fa -hf b/firefunction-v2-GGUF -hff firefunction-v2-IQ1_M.gguf --chat-template-file t.jinja", nullptr},
    {"-m m.gguf -ctk q4_0 -ctv q4_0", nullptr},
    {"-m m.gguf -ctk q3_0", "--cache-type-k.*q8_0"},
    {"-m gemma.gguf --mmproj mmproj-gemma.gguf", nullptr},
    {"-m gemma.gguf -mm mmproj-gemma.gguf --no-mmproj-offload --image-max-tokens 512", nullptr},
    {"-m gemma.gguf --no-mmproj", nullptr},
    {"-m gemma.gguf --mmproj-url https://a.example/mmproj.gguf", "--mmproj-url .*--model FILE"},
    {"-m m.gguf --embeddings --pooling mean -ub 8192", nullptr},
    {"-m bge.gguf --reranking --host 0.0.0.0", nullptr},
    {"-m m.gguf --lora a.gguf --lora-scaled b.gguf:0.5 --lora-init-without-apply", nullptr},
    {"-m m.gguf --sleep-idle-seconds 600 --no-ui", nullptr},
    {"-m m.gguf -c 16384 --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768", nullptr},
    {"-m m.gguf --slot-save-path /var/cache --slots", nullptr},
    {"--models-dir ./models_directory", "--models-dir ./models_directory: No such file"},
    {"--models-preset ./my-models.ini", "--models-preset ./my-models.ini: it cannot be read"},
    {"-m m.gguf --grammar-file grammars/json.gbnf", "--grammar-file: .*grammars/json.gbnf"},
    {"-m m.gguf --mcp-servers-config mcp.json", "--mcp-servers-config .*tools"},
    {"-m m.gguf --chat-template chatml", nullptr},
    {"-m m.gguf --chat-template llama3", "--chat-template: .*--chat-template-file"},
    {"-m m.gguf --api-prefix /v1 --cors-origins https://a.example,localhost --no-cors-credentials", nullptr},
    {"-m m.gguf --override-kv tokenizer.ggml.add_bos_token=bool:false", nullptr},
    {"-m m.gguf --override-kv tokenizer.ggml.add_bos_token", "--override-kv: "},
    {"-m m.gguf -ot exps=NOWHERE", "(-ot|--override-tensor): "},
};

TEST(LlamaFlags, RealCommandLinesStartOrSayWhatToUse) {
  ASSERT_GE(std::size(kReal), 40u);
  for (const Real& real : kReal) {
    const Read result = read(real.line);
    if (real.refusal == nullptr) {
      EXPECT_TRUE(result.line.serve) << real.line << "\n" << result.errors;
    } else {
      EXPECT_FALSE(result.line.serve) << real.line;
      EXPECT_EQ(result.line.exit_code, 2 /* usage */) << real.line;
      EXPECT_TRUE(std::regex_search(result.errors, std::regex(real.refusal))) << real.line << "\n" << result.errors;
    }
  }
}

TEST(LlamaFlags, ArgumentsMeanWhatTheyMeanThere) {
  const auto serve = read("-m m.gguf -ngl all -t -1 -np -1 -fa -c 4096 --port=1234 -cram 512 -v").line.serve;
  ASSERT_TRUE(serve);
  EXPECT_EQ(serve->gpu_layers, -1);
  EXPECT_EQ(serve->model.threads, 0);
  EXPECT_EQ(serve->model.slots, 0);
  EXPECT_EQ(serve->model.flash_attention, FlashAttention::on);
  EXPECT_EQ(serve->model.cells, 4096);
  EXPECT_EQ(serve->port, 1234);
  EXPECT_EQ(serve->cache_ram, 512);
  EXPECT_EQ(serve->log_level, LogLevel::debug);
}

TEST(LlamaFlags, WhatHasNoEffectIsSaidWithItsReason) {
  const auto serve = read("-m m.gguf --defrag-thold 5 --mlock --jinja").line.serve;
  ASSERT_TRUE(serve);
  EXPECT_TRUE(serve->use_mlock);
  ASSERT_EQ(serve->notes.size(), 2u);
  EXPECT_TRUE(std::regex_search(serve->notes[0], std::regex("^--defrag-thold has no effect: ."))) << serve->notes[0];
  EXPECT_TRUE(std::regex_search(serve->notes[1], std::regex("^--jinja has no effect: ."))) << serve->notes[1];
}

TEST(LlamaFlags, DefaultsOfRequestsAreReadByLlamaCommon) {
  const auto serve = read("-m m.gguf --temp 0.6 --top_k=20 --reasoning-budget 0 -r END").line.serve;
  ASSERT_TRUE(serve);
  EXPECT_TRUE(serve->notes.empty());
  const RequestDefaults defaults = serve->llama->defaults({});
  EXPECT_EQ(defaults.sampling.temperature, 0.6f);
  EXPECT_EQ(defaults.sampling.top_k, 20);
  EXPECT_EQ(defaults.reasoning_budget, 0);
  EXPECT_EQ(defaults.stop, std::vector<std::string>{"END"});
}

TEST(LlamaFlags, ABadValueNamesItsFlag) {
  EXPECT_NE(read("--temp").errors.find("--temp: a value is missing"), std::string::npos);
  EXPECT_NE(read("--top-k many").errors.find("--top-k: a number was expected; got many"), std::string::npos);
  EXPECT_EQ(read("--reasoning maybe").line.exit_code, 2);
  EXPECT_EQ(read("--grammar 'root ::= x'").line.exit_code, 2);
}

TEST(LlamaFlags, AreWrittenAsOthers) {
  const auto serve =
      read("-m m.gguf -lv 4 -ctxcp 7 -cms 128 -fitt 512 -fitc 8192 --kv-unified-per-slot 4096").line.serve;
  ASSERT_TRUE(serve);
  EXPECT_EQ(serve->log_level, LogLevel::debug);
  EXPECT_EQ(serve->checkpoints_max, 7u);
  EXPECT_EQ(serve->checkpoint_least, 128);
  EXPECT_EQ(serve->fit_target_mib, 512);
  EXPECT_EQ(serve->model.cells_least, 8192);
  EXPECT_EQ(serve->model.cells_per_slot_max, 4096);
  EXPECT_EQ(read("-m m.gguf --verbosity 2").line.serve->log_level, LogLevel::warning);
  EXPECT_FALSE(read("-m m.gguf --verbosity much").line.serve);
  EXPECT_TRUE(read("-m m.gguf -dio").line.serve);
}

TEST(LlamaFlags, DraftsAreWrittenAsOurs) {
  const auto ngram = read("-m m.gguf --spec-default --spec-ngram-mod-n-match 5 --spec-ngram-mod-n-max 64").line.serve;
  ASSERT_TRUE(ngram);
  EXPECT_EQ(ngram->speculation.source, DraftSource::ngram);
  EXPECT_EQ(ngram->speculation.ngram, 5);
  EXPECT_EQ(ngram->speculation.draft_tokens_max(), 16) << "a step checks no more";
  const auto draft = read("-m m.gguf -md d.gguf --draft 5 --draft-n-min 2").line.serve;
  ASSERT_TRUE(draft);
  EXPECT_EQ(draft->speculation.draft_tokens_max(), 5);
  EXPECT_EQ(draft->speculation.least, 2);
  EXPECT_TRUE(draft->notes.empty());
}

TEST(LlamaFlags, OfOnAndOffTheLastHolds) {
  EXPECT_FALSE(read("--no-mmap").line.serve->use_mmap);
  EXPECT_TRUE(read("--no-mmap --mmap").line.serve->use_mmap);
  EXPECT_FALSE(read("--mmap --no-mmap").line.serve->use_mmap);
  EXPECT_FALSE(read("-kvu -no-kvu").line.serve->model.unified);
  EXPECT_TRUE(read("-no-kvu -kvu").line.serve->model.unified);
  EXPECT_TRUE(read("--no-ui --ui").line.serve->page);
  EXPECT_FALSE(read("--ui --no-ui").line.serve->page);
  EXPECT_TRUE(read("--no-warmup --warmup").line.serve->model.warm_up);
}

TEST(LlamaFlags, TheLastOfSeveralHolds) {
  const auto serve =
      read("-m m.gguf -c 2048 -c 4096 --port 1 --port=2 --api-key a --api-key b,c -fa off -fa on").line.serve;
  ASSERT_TRUE(serve);
  EXPECT_EQ(serve->model.cells, 4096);
  EXPECT_EQ(serve->port, 2);
  EXPECT_EQ(serve->model.flash_attention, FlashAttention::on);
  EXPECT_EQ(serve->api_keys, (std::vector<std::string>{"a", "b", "c"}));
}

TEST(LlamaFlags, AValueOfOursIsNeverTakenForAFlag) {
  const auto serve = read("--alias --jinja --api-key -hf --defrag-thold --mlock").line.serve;
  ASSERT_TRUE(serve);
  EXPECT_EQ(serve->alias, "--jinja");
  EXPECT_EQ(serve->api_keys, std::vector<std::string>{"-hf"});
  EXPECT_FALSE(serve->use_mlock) << "it was the value of --defrag-thold";
}

TEST(LlamaFlags, OtherCommandsGetLongNamesAndNothingElse) {
  EXPECT_EQ(with_long_names({"inspect", "-np", "4", "--temp", "1"}),
            (std::vector<std::string>{"inspect", "--parallel", "4", "--temp", "1"}));
}

TEST(LlamaFlags, VariablesAreReadLikeFlags) {
  CLI::App app;
  const auto from = [&](ReadVariable variable) { return from_llama_server(app, {"serve"}, variable); };
  const LlamaArguments repository = from([](const char* name) -> const char* {
    return std::strcmp(name, "LLAMA_ARG_DOCKER_REPO") == 0 ? "ai/x" : nullptr;
  });
  ASSERT_TRUE(repository.refusal);
  EXPECT_TRUE(repository.refusal->starts_with("LLAMA_ARG_DOCKER_REPO ")) << *repository.refusal;
  const LlamaArguments metrics = from([](const char* name) -> const char* {
    return std::strcmp(name, "LLAMA_ARG_ENDPOINT_METRICS") == 0 ? "1" : nullptr;
  });
  EXPECT_FALSE(metrics.refusal);
  ASSERT_EQ(metrics.notes.size(), 1u);
  EXPECT_TRUE(metrics.notes[0].starts_with("LLAMA_ARG_ENDPOINT_METRICS ")) << metrics.notes[0];
  const LlamaArguments off = from(
      [](const char* name) -> const char* { return std::strcmp(name, "LLAMA_ARG_UI_MCP_PROXY") == 0 ? "0" : nullptr; });
  EXPECT_FALSE(off.refusal) << "switched off is what it is here";
  const LlamaArguments top_k =
      from([](const char* name) -> const char* { return std::strcmp(name, "LLAMA_ARG_TOP_K") == 0 ? "5" : nullptr; });
  EXPECT_EQ(top_k.options->defaults({}).sampling.top_k, 5);
  const auto flag_wins = from_llama_server(app, {"serve", "--top-k", "6"}, [](const char* name) -> const char* {
    return std::strcmp(name, "LLAMA_ARG_TOP_K") == 0 ? "5" : nullptr;
  });
  EXPECT_EQ(flag_wins.options->defaults({}).sampling.top_k, 6);
  const LlamaArguments no_prefill = from([](const char* name) -> const char* {
    return std::strcmp(name, "LLAMA_ARG_NO_PREFILL_ASSISTANT") == 0 ? "1" : nullptr;
  });
  EXPECT_FALSE(no_prefill.options->defaults({}).prefill);
}

// Of what comes of `arguments` with one variable set.
template <const char* kName, const char* kValue>
LlamaArguments with_variable(std::vector<std::string> arguments = {"serve"}) {
  CLI::App serve;
  ServeConfig config;
  add_serve_options(serve, config);
  return from_llama_server(serve, arguments,
                           [](const char* name) { return std::strcmp(name, kName) == 0 ? kValue : nullptr; });
}

constexpr char kMmap[] = "LLAMA_ARG_MMAP";
constexpr char kUi[] = "LLAMA_ARG_UI";
constexpr char kJinja[] = "LLAMA_ARG_JINJA";
constexpr char kNoBatching[] = "LLAMA_ARG_NO_CONT_BATCHING";
constexpr char kNoCache[] = "LLAMA_ARG_NO_CACHE_PROMPT";
constexpr char kVerbosity[] = "LLAMA_ARG_LOG_VERBOSITY";
constexpr char kZero[] = "0";
constexpr char kOne[] = "1";

TEST(LlamaFlags, AVariableSwitchesOffWhatItsFlagWould) {
  using Words = std::vector<std::string>;
  EXPECT_EQ((with_variable<kMmap, kZero>().arguments), (Words{"serve", "--no-mmap"}));
  EXPECT_EQ((with_variable<kUi, kZero>().arguments), (Words{"serve", "--no-webui"}));
  EXPECT_EQ((with_variable<kNoCache, kOne>().arguments), (Words{"serve", "--cache-prompt=false"}));
  EXPECT_TRUE((with_variable<kJinja, kZero>().refusal));
  EXPECT_TRUE((with_variable<kNoBatching, kOne>().refusal));
  EXPECT_FALSE((with_variable<kJinja, kOne>().refusal));
}

TEST(LlamaFlags, AFlagWinsOverItsVariable) {
  using Words = std::vector<std::string>;
  EXPECT_EQ((with_variable<kVerbosity, kOne>().arguments), (Words{"serve", "--log-level", "1"}));
  EXPECT_EQ((with_variable<kVerbosity, kOne>({"serve", "-lv", "4"}).arguments), (Words{"serve", "--log-level", "4"}));
  EXPECT_EQ((with_variable<kUi, kZero>({"serve", "--ui"}).arguments), (Words{"serve", "--no-webui=false"}));
}

TEST(LlamaFlags, SomethingComesOfEachOfLlamaCommons) {
  CLI::App serve;
  ServeConfig config;
  add_serve_options(serve, config);
  const LlamaOptions options;
  std::size_t applied = 0;
  for (const LlamaOption& option : options.all()) {
    const LlamaFate fate = fate_of(serve, option);
    EXPECT_NE(fate.kind, LlamaFate::Kind::unknown) << option.names.front();
    applied += fate.kind == LlamaFate::Kind::applied ? 1 : 0;
  }
  EXPECT_GT(applied, 80u);
  for (const AppliedFlags& flags : applied_flags()) {
    std::stringstream names((std::string(flags.names)));
    for (std::string name; names >> name;) EXPECT_NE(options.find(name), nullptr) << name;
  }
}

TEST(LlamaFlags, TheDocumentationSaysWhatComesOfEach) {
  std::ifstream file(CHASQUI_SOURCE_DIR "/docs/llama_flags.md");
  std::stringstream text;
  text << file.rdbuf();
  CLI::App serve;
  ServeConfig config;
  add_serve_options(serve, config);
  EXPECT_EQ(llama_flags_document(serve), text.str()) << "chasqui config --llama-flags > docs/llama_flags.md";
}

TEST(LlamaFlags, EveryFlagOfThePinnedServerIsKnown) {
  std::ifstream file(CHASQUI_LLAMA_SERVER_README);
  ASSERT_TRUE(file) << CHASQUI_LLAMA_SERVER_README;
  const std::regex row("^\\| `(-[^`]*)` \\|");
  const std::regex flag("(^|, )(--?[A-Za-z][A-Za-z0-9.-]*)");
  std::size_t flags = 0;
  for (std::string line; std::getline(file, line);) {
    std::smatch head;
    if (!std::regex_search(line, head, row)) continue;
    const std::string names = head[1];
    for (std::sregex_iterator name(names.begin(), names.end(), flag), end; name != end; ++name) {
      ++flags;
      // Either something comes of it (a value may be missing or wrong) or the table has it.
      const Read result = read((*name)[2].str());
      EXPECT_FALSE(result.errors.find("not expected") != std::string::npos) << (*name)[2] << ": " << result.errors;
    }
  }
  EXPECT_GT(flags, 250u);
}

}  // namespace
}  // namespace chasqui
