// llama-server's flags for weights and contexts, by what they change: of a model, of logits, of identities.
#include "model/llama_params.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include <gguf.h>
#include <gtest/gtest.h>
#include <llama.h>
#include <unistd.h>

#include "model/llama_embedder.h"
#include "model/llama_model.h"
#include "model/llama_tokenizer.h"
#include "model/loaded_model.h"
#include "model/test_options.h"
#include "model/test_rows.h"
#include "model/test_weights.h"
#include "model/weights_identity.h"

namespace chasqui {
namespace {

WeightsPtr load(LlamaOptionsPtr options, bool vocabulary_only = false) {
  WeightsOptions how;
  how.llama = std::move(options);
  how.vocabulary_only = vocabulary_only;
  auto weights = LlamaWeights::from_file(test_model_path(), how);
  CHECK(weights, weights ? "" : weights.error().message);
  return *weights;
}

ModelConfig context_of(LlamaOptionsPtr options) {
  ModelConfig config{.slots = 1, .cells = 512, .threads = 1, .warm_up = false};
  config.llama = std::move(options);
  return config;
}

std::vector<Token> prompt() {
  return LlamaTokenizer(test_weights())
      .tokenize("The runner waits at the relay station until the message comes, then carries it to the next one.",
                AddSpecial::yes, ParseSpecial::no);
}

std::vector<float> logits_of(const WeightsPtr& weights, LlamaOptionsPtr options) {
  auto model = LlamaModel::make(weights, context_of(std::move(options)));
  CHECK(model, model ? "" : model.error().message);
  return run(**model, 0, 0, prompt());
}

// With nothing of ours between.
std::vector<float> logits_by_hand(llama_context_params params) {
  params.n_ctx = 512;
  params.n_batch = params.n_ubatch = 512;
  params.n_threads = params.n_threads_batch = 1;
  llama_context* context = llama_init_from_model(test_weights()->model(), params);
  CHECK(context != nullptr);
  std::vector<Token> tokens = prompt();
  CHECK(llama_decode(context, llama_batch_get_one(tokens.data(), static_cast<std::int32_t>(tokens.size()))) == 0);
  const float* logits = llama_get_logits_ith(context, -1);
  std::vector<float> out(logits, logits + test_weights()->info().vocabulary);
  llama_free(context);
  return out;
}

struct RopeCase {
  std::vector<Words> given;
  llama_context_params same;
};

std::vector<RopeCase> rope_cases() {
  const llama_context_params none = llama_context_default_params();
  std::vector<RopeCase> cases(6, {{}, none});
  cases[0].given = {{"--rope-freq-base", "400"}};
  cases[0].same.rope_freq_base = 400;
  cases[1].given = {{"--rope-scale", "4"}};
  cases[1].same.rope_freq_scale = 0.25f;
  cases[2].given = {{"--rope-scaling", "yarn"}, {"--rope-freq-scale", "0.25"}, {"--yarn-orig-ctx", "64"}};
  cases[2].same.rope_scaling_type = LLAMA_ROPE_SCALING_TYPE_YARN;
  cases[2].same.rope_freq_scale = 0.25f;
  cases[2].same.yarn_orig_ctx = 64;
  cases[3] = cases[2];
  cases[3].given.push_back({"--yarn-ext-factor", "0.5"});
  cases[3].same.yarn_ext_factor = 0.5f;
  cases[4] = cases[2];
  cases[4].given.insert(cases[4].given.end(), {{"--yarn-beta-slow", "4"}, {"--yarn-beta-fast", "8"}});
  cases[4].same.yarn_beta_slow = 4;
  cases[4].same.yarn_beta_fast = 8;
  cases[5].given = {{"--yarn-attn-factor", "1.5"}};
  cases[5].same.yarn_attn_factor = 1.5f;
  return cases;
}

TEST(LlamaParams, RopeIsWhatALlamaContextWithTheSameParametersHas) {
  const std::vector<float> plain = logits_of(test_weights(), nullptr);
  EXPECT_LT(difference(plain, logits_by_hand(llama_context_default_params())), kClose);
  for (const RopeCase& rope : rope_cases()) {
    const std::vector<float> got = logits_of(test_weights(), flags(rope.given));
    EXPECT_LT(difference(logits_by_hand(rope.same), got), 0.001) << rope.given.back().front();
    EXPECT_GT(difference(plain, got), kClose) << rope.given.back().front();
  }
  EXPECT_EQ(logits_of(test_weights(), flags({})), plain) << "flags that say nothing change nothing";
}

TEST(LlamaParams, EmbeddingsHaveTheSameRope) {
  const auto embed = [](LlamaOptionsPtr options) {
    auto made = LlamaEmbedder::make(test_weights(), {.tokens_max = 256, .llama = std::move(options)});
    CHECK(made, made ? "" : made.error().message);
    const std::vector<std::vector<Token>> inputs = {prompt()};
    return (*made)->embed(inputs, nullptr).value()[0].values;
  };
  EXPECT_GT(difference(embed(nullptr), embed(flags({{"--rope-scale", "4"}}))), kClose);
}

TEST(LlamaParams, WhereItIsComputedDoesNotChangeWhatComesOut) {
  const std::vector<float> plain = logits_of(test_weights(), nullptr);
  for (const std::vector<Words>& given :
       std::vector<std::vector<Words>>{{{"-ot", ".*=CPU"}},
                                       {{"-ot", "blk\\.0\\..*=CPU,output.*=CPU"}, {"--n-cpu-ffn", "1"}},
                                       {{"--cpu-moe"}, {"--n-cpu-moe", "2"}},
                                       {{"--no-repack"}},
                                       {{"--no-host"}},
                                       {{"--check-tensors"}},
                                       {{"-dev", "none"}},
                                       {{"-sm", "none"}, {"-mg", "0"}, {"-ts", "1"}},
                                       {{"-lzm", "on"}},
                                       {{"--numa", "distribute"}},
                                       {{"--no-kv-offload"}, {"--no-op-offload"}}}) {
    const LlamaOptionsPtr options = flags(given);
    EXPECT_LT(difference(plain, logits_of(load(options), options)), kClose) << given.front().front();
  }
}

// Of the demo model, under a name of its own.
class ModelCopy {
 public:
  explicit ModelCopy(const std::string& name)
      : path_(testing::TempDir() + "chasqui-" + name + "-" + std::to_string(::getpid()) + ".gguf") {
    std::filesystem::copy_file(test_model_path(), path_, std::filesystem::copy_options::overwrite_existing);
  }
  ~ModelCopy() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

TEST(LlamaParams, TheModeOfLoadingWinsOverOurFlags) {
  const ModelCopy model("modes");
  const auto mapped = [&model](const char* mode, bool mmap) {
    WeightsOptions how;
    how.mmap = mmap;
    how.llama = flags({{"--load-mode", mode}});
    const auto weights = LlamaWeights::from_file(model.path(), how);
    EXPECT_TRUE(weights) << mode;
    std::ifstream maps("/proc/self/maps");
    return std::string(std::istreambuf_iterator<char>(maps), {}).find(model.path()) != std::string::npos;
  };
  EXPECT_TRUE(mapped("mmap", false));
  EXPECT_FALSE(mapped("none", true));
  EXPECT_FALSE(mapped("dio", true));
  EXPECT_TRUE(mapped("auto", true)) << "not given: our flag";
  EXPECT_FALSE(mapped("auto", false)) << "not given: our flag";
}

TEST(LlamaParams, AModelInMemoryIsLoadedInEveryMode) {
  std::ifstream file(test_model_path(), std::ios::binary);
  const std::string content(std::istreambuf_iterator<char>(file), {});
  for (const char* mode : {"auto", "none", "mmap", "mlock", "mmap+mlock", "dio"}) {
    WeightsOptions how;
    how.llama = flags({{"--load-mode", mode}, {"--override-kv", "general.name=str:other"}});
    const auto weights = LlamaWeights::from_memory(std::as_bytes(std::span(content)), "demo", how);
    ASSERT_TRUE(weights) << mode << weights.error().message;
    EXPECT_EQ((*weights)->info().name, "other");
  }
}

TEST(LlamaParams, ADraftModelHasItsOwnPlacesForTensors) {
  const LlamaOptionsPtr options = flags({{"-ot", "a=CPU,b=CPU"}, {"-otd", "c=CPU"}, {"--no-repack"}});
  const auto patterns = [&options](bool draft) {
    const llama_model_params params = first_model_params(options, draft);
    EXPECT_FALSE(params.use_extra_bufts);
    std::string names;
    for (const auto* placed = params.tensor_buft_overrides; placed->pattern != nullptr; ++placed) {
      names += placed->pattern;
    }
    return names;
  };
  EXPECT_EQ(patterns(false), "ab");
  EXPECT_EQ(patterns(true), "c");
  EXPECT_EQ(first_model_params(flags({{"-ot", "a=CPU"}}), true).tensor_buft_overrides, nullptr);
}

TEST(LlamaParams, MetadataIsWhatIsSaidInsteadOfTheFile) {
  const bool adds = test_weights()->info().adds_bos;
  const std::string architecture = test_weights()->info().architecture;
  const LlamaOptionsPtr options =
      flags({{"--override-kv", std::string("tokenizer.ggml.add_bos_token=bool:") + (adds ? "false" : "true")},
             {"--override-kv", "general.name=str:other,general.sampling.temp=float:0.25"},
             {"--override-kv", architecture + ".context_length=int:777"}});
  const WeightsPtr weights = load(options);
  EXPECT_EQ(weights->info().adds_bos, !adds);
  EXPECT_EQ(weights->info().name, "other");
  EXPECT_EQ(weights->info().sampling.temperature, 0.25f);
  EXPECT_EQ(weights->info().context_trained, 777);
  EXPECT_EQ(load(options, true)->info().adds_bos, !adds) << "also where only the vocabulary is loaded";
  EXPECT_EQ(LlamaTokenizer(weights).tokenize("a", AddSpecial::yes, ParseSpecial::no).size(),
            LlamaTokenizer(test_weights()).tokenize("a", AddSpecial::yes, ParseSpecial::no).size() + (adds ? -1 : 1));
}

TEST(LlamaParams, ARecommendationThatNoRequestMayHaveIsLeftOut) {
  const LlamaOptionsPtr options =
      flags({{"--override-kv", "general.sampling.temp=float:-1,general.sampling.top_p=float:1.5"},
             {"--override-kv", "general.sampling.top_k=float:1e20,general.sampling.min_p=float:0.5"}});
  const RecommendedSampling sampling = load(options)->info().sampling;
  EXPECT_FALSE(sampling.temperature);
  EXPECT_FALSE(sampling.top_p);
  EXPECT_FALSE(sampling.top_k);
  EXPECT_EQ(sampling.min_p, 0.5f);
}

TEST(LlamaParams, AVocabularyThatOutlivesTheWeightsHasTheSameMetadata) {
  LoadOptions how;
  how.sleeps = true;
  how.weights.llama = flags({{"--override-kv", "tokenizer.ggml.add_bos_token=bool:true"}, {"-ot", ".*=CPU"}});
  const auto with = load_llama(test_model_path(), how);
  ASSERT_TRUE(with) << with.error().message;
  EXPECT_TRUE(with->info.adds_bos);
  how.weights.llama = flags({{"--override-kv", "tokenizer.ggml.add_bos_token=bool:false"}});
  const auto without = load_llama(test_model_path(), how);
  ASSERT_TRUE(without) << without.error().message;
  EXPECT_EQ(with->tokenizer->tokenize("a", AddSpecial::yes, ParseSpecial::no).size(),
            without->tokenizer->tokenize("a", AddSpecial::yes, ParseSpecial::no).size() + 1);
}

// Writes a number that is none into the first tensor of floats.
void spoil(const std::string& path) {
  const std::unique_ptr<gguf_context, void (*)(gguf_context*)> gguf(
      gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = nullptr}), gguf_free);
  std::int64_t tensor = 0;
  while (gguf_get_tensor_type(gguf.get(), tensor) != GGML_TYPE_F32) ++tensor;
  const std::size_t at = gguf_get_data_offset(gguf.get()) + gguf_get_tensor_offset(gguf.get(), tensor);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at));
  const float none = std::nanf("");
  file.write(reinterpret_cast<const char*>(&none), sizeof none);
}

TEST(LlamaParams, TensorsAreCheckedOnRequest) {
  const ModelCopy model("nan");
  spoil(model.path());
  EXPECT_TRUE(LlamaWeights::from_file(model.path()));
  WeightsOptions how;
  how.llama = flags({{"--check-tensors"}});
  const auto checked = LlamaWeights::from_file(model.path(), how);
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message.find("invalid data"), std::string::npos) << checked.error().message;
}

TEST(LlamaParams, TheContextGrowsWithTheScaleOfRope) {
  const TokenCount trained = test_weights()->info().context_trained;
  const auto usable = [](const std::vector<Words>& given) { return load(flags(given))->info().context_trained; };
  EXPECT_EQ(usable({{"--rope-scaling", "yarn"}}), trained);
  EXPECT_EQ(usable({{"--rope-scaling", "yarn"}, {"--rope-scale", "4"}}), 4 * trained);
  EXPECT_EQ(usable({{"--rope-scaling", "yarn"}, {"--rope-scale", "4"}, {"--yarn-orig-ctx", "100"}}), 400);
  EXPECT_EQ(usable({{"--rope-scale", "2"}}), 2 * trained);
  EXPECT_EQ(usable({{"--rope-scaling", "none"}, {"--rope-scale", "2"}}), trained);
  // libllama comes to the same, in its own way.
  const WeightsPtr weights = load(nullptr);
  ModelConfig config =
      context_of(flags({{"--rope-scaling", "yarn"}, {"--rope-scale", "4"}, {"--yarn-orig-ctx", "100"}}));
  ASSERT_TRUE(LlamaModel::make(weights, config));
  EXPECT_EQ(llama_model_n_ctx_train(weights->model()), 400);
}

TEST(LlamaParams, WhatChangesKvChangesTheIdentityOfContexts) {
  ModelShape shape;
  shape.slots = 4;
  std::set<Checksum> seen;
  const auto identity = [&shape](LlamaOptionsPtr options) { return identify_context(context_of(options), shape); };
  seen.insert(identity(nullptr));
  for (const RopeCase& rope : rope_cases()) {
    EXPECT_TRUE(seen.insert(identity(flags(rope.given))).second) << rope.given.back().front();
  }
  EXPECT_TRUE(seen.insert(identity(flags({{"--override-kv", "a.b=int:1"}}))).second);
  EXPECT_TRUE(seen.insert(identity(flags({{"--override-kv", "a.b=int:2"}}))).second);
  EXPECT_EQ(identity(flags({{"-ot", ".*=CPU"}, {"--no-kv-offload"}, {"--prio", "-1"}, {"--temp", "0.1"}})),
            identity(nullptr));
}

TEST(LlamaParams, WhatChangesTheSpeedOfThreadsIsTold) {
  std::set<std::string> seen = {""};
  for (const Words& flag : std::vector<Words>{{"--cpu-mask", "1"},
                                              {"--cpu-mask", "2"},
                                              {"--cpu-mask-batch", "1"},
                                              {"--cpu-strict", "1"},
                                              {"--prio", "1"},
                                              {"--numa", "isolate"},
                                              {"--no-repack"},
                                              {"--no-host"},
                                              {"-ot", "a=CPU"},
                                              {"-ot", "b=CPU"},
                                              {"--no-kv-offload"},
                                              {"--no-op-offload"}}) {
    EXPECT_TRUE(seen.insert(marks_of_speed(flags({flag}))).second) << flag.front();
  }
  EXPECT_EQ(marks_of_speed(flags({{"--temp", "0.1"}, {"--rope-scale", "2"}})), "");
  EXPECT_EQ(marks_of_speed(nullptr), "");
}

TEST(LlamaParams, BadValuesNameTheFlag) {
  const auto field = [](const std::vector<Words>& given) {
    const auto options = try_flags(given);
    return options ? "none" : options.error().field;
  };
  EXPECT_EQ(field({{"--rope-scale", "0"}}), "--rope-scale");
  EXPECT_EQ(field({{"--rope-freq-scale", "-1"}}), "--rope-scale");
  EXPECT_EQ(field({{"--rope-freq-base", "nan"}}), "--rope-freq-base");
  EXPECT_EQ(field({{"--rope-scaling", "cubic"}}), "--rope-scaling");
  EXPECT_EQ(field({{"--yarn-orig-ctx", "-5"}}), "--yarn-orig-ctx");
  EXPECT_EQ(field({{"--yarn-ext-factor", "inf"}}), "--yarn-ext-factor");
  EXPECT_EQ(field({{"--cpu-mask", "0"}}), "--cpu-mask");
  EXPECT_EQ(field({{"--cpu-range", "3-2"}}), "--cpu-mask");
  EXPECT_EQ(field({{"--cpu-mask", "xyz"}}), "--cpu-mask");
  EXPECT_EQ(field({{"-ot", ".*=Nowhere"}}), "-ot");
  EXPECT_EQ(field({{"-ot", "blk[=CPU"}}), "--override-tensor");
  EXPECT_EQ(field({{"--override-kv", "a=b"}}), "--override-kv");
  EXPECT_EQ(field({{"--device", "GPU77"}}), "--device");
  EXPECT_EQ(field({{"--control-vector-layer-range", "3", "2"}}), "--control-vector-layer-range");
}

}  // namespace
}  // namespace chasqui
