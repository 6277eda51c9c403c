#include "app/model_memory.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

constexpr std::uint64_t kMiB = 1ull << 20;
constexpr std::uint64_t kGiB = 1ull << 30;

TEST(ModelMemory, ReadsBytesWithAndWithoutUnits) {
  struct Said {
    const char* text;
    std::uint64_t bytes;
  };
  for (const auto& [text, bytes] : {Said{"1024", 1024}, Said{"24G", 24 * kGiB}, Said{"1.5g", 3 * kGiB / 2},
                                    Said{"500MiB", 500 * kMiB}, Said{"2 KB", 2048}, Said{"7b", 7}}) {
    const auto read = read_bytes(text);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(*read, bytes) << text;
  }
  for (const char* text : {"", "G", "0", "-1", "5X", "5GG", "5iB", "1e40", "nan", "5 apples"}) {
    EXPECT_FALSE(read_bytes(text)) << text;
  }
}

GgufSummary half_a_billion() {
  GgufSummary out;
  out.tensor_bytes = 500 * kMiB;
  out.embedding_length = 896;
  out.layers = 24;
  out.vocabulary = 151936;
  out.context_trained = 32768;
  out.key_values_per_cell = out.value_values_per_cell = 24 * 128;
  return out;
}

ServeConfig on_demand(std::uint64_t memory) {
  ServeConfig out;
  out.on_demand = true;
  out.models_memory = memory;
  out.model.slots = 0;
  return out;
}

TEST(ModelMemory, IsWeightsAndCellsAndWhatAStepNeeds) {
  ServeConfig config = on_demand(16 * kGiB);
  config.model.slots = 4;
  config.model.cells = 4 * 8192;
  const std::uint64_t cells = 4ull * 8192 * 2 * 24 * 128 * 2;
  const std::uint64_t needed = memory_needed(config, half_a_billion(), nullptr, false);
  EXPECT_GT(needed, 500 * kMiB + cells);
  EXPECT_LT(needed, 500 * kMiB + cells + 100 * kMiB);
  const GgufSummary draft = half_a_billion();
  EXPECT_GT(memory_needed(config, half_a_billion(), &draft, false), needed + 500 * kMiB + cells);
}

TEST(ModelMemory, CountsTensorsThatAreReorderedTwice) {
  GgufSummary model = half_a_billion();
  const std::uint64_t once = memory_needed(on_demand(16 * kGiB), model, nullptr, false);
  model.formats = {{"Q4_0", 300 * kMiB}, {"Q8_0", 200 * kMiB}};
  EXPECT_EQ(memory_needed(on_demand(16 * kGiB), model, nullptr, false), once + 300 * kMiB);
  ServeConfig read = on_demand(16 * kGiB);
  read.use_mmap = false;
  EXPECT_EQ(memory_needed(read, model, nullptr, false), once) << "read rather than mapped";
}

TEST(ModelMemory, StatesThatDraftTokensWantAreCountedWhereSlotsAreChosen) {
  GgufSummary hybrid = half_a_billion();
  hybrid.recurrent = hybrid.hybrid = true;
  hybrid.state_bytes_per_slot = 64 * kMiB;
  ServeConfig config = on_demand(3 * kGiB);
  const std::uint64_t without = memory_needed(config, hybrid, nullptr, false);
  config.speculation.source = DraftSource::ngram;
  const std::uint64_t with = memory_needed(config, hybrid, nullptr, false);
  EXPECT_LE(with, 3 * kGiB) << "fewer slots rather than more than there is";
  config.model.slots = 16;
  EXPECT_GT(memory_needed(config, hybrid, nullptr, false), 16 * 8 * 64 * kMiB) << "but those that were asked for";
  EXPECT_LE(without, 3 * kGiB);
}

TEST(ModelMemory, OfSeveralModelsFitsTheLimitWhereContextsAreNotGiven) {
  for (const std::int32_t sharers : {1, 2, 4}) {
    ServeConfig config = on_demand(8 * kGiB);
    config.sharers = sharers;
    const std::uint64_t needed = memory_needed(config, half_a_billion(), nullptr, false);
    EXPECT_LE(static_cast<std::uint64_t>(sharers) * needed, 8 * kGiB) << sharers;
  }
}

TEST(ModelMemory, SaysWhatIsNeededAndAllowed) {
  ServeConfig config = on_demand(kGiB);
  config.name = "big";
  EXPECT_TRUE(check_fits(config, kGiB, 0));
  EXPECT_TRUE(check_fits(config, 0, 2 * kGiB)) << "nothing is known of it";
  const auto too_much = check_fits(config, 3 * kGiB / 4, kGiB / 2);
  ASSERT_FALSE(too_much);
  EXPECT_EQ(too_much.error().code, ErrorCode::not_supported);
  EXPECT_EQ(too_much.error().message,
            "the model big needs 768 MiB of memory, and --models-memory allows 1.0 GiB, 512 MiB of which are of models "
            "that stay loaded: give it more, or the model a smaller --ctx-size or --parallel");
}

}  // namespace
}  // namespace chasqui
