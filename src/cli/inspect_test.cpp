#include "cli/inspect.h"

#include <gtest/gtest.h>

namespace chasqui::cli {
namespace {

GgufSummary small_model() {
  GgufSummary model;
  model.name = "small";
  model.architecture = "llama";
  model.kind = "model";
  model.tensor_bytes = 1 << 20;
  model.layers = 2;
  model.context_trained = 4096;
  model.key_values_per_cell = 64;
  model.value_values_per_cell = 64;
  model.formats["Q4_0"] = 1 << 20;
  return model;
}

ModelConfig config(std::int32_t slots, TokenCount cells) {
  ModelConfig out;
  out.slots = slots;
  out.cells = cells;
  return out;
}

TEST(Inspect, TheTableIsWeightsAndTheCellsOfAllSlots) {
  const MemoryTable table = memory_table(small_model(), config(4, 4096));
  EXPECT_EQ(table.contexts, (std::vector<std::int64_t>{1024, 2048, 4096}));
  EXPECT_EQ(table.bytes.front(), (1u << 20) + 1024u * 256u);
  EXPECT_EQ(table.bytes.back(), (1u << 20) + 16u * 4096u * 256u);
}

TEST(Inspect, QuantizedKeysAndValuesTakeAboutHalf) {
  ModelConfig q8 = config(1, 4096);
  q8.kv_keys = q8.kv_values = KvType::q8_0;
  EXPECT_EQ(kv_bytes_per_cell(small_model(), config(1, 4096)), 256u);
  EXPECT_EQ(kv_bytes_per_cell(small_model(), q8), 136u);
}

TEST(Inspect, StatesAreCountedWithThoseThatDraftTokensWant) {
  GgufSummary model = small_model();
  model.recurrent = true;
  model.key_values_per_cell = model.value_values_per_cell = 0;
  model.state_bytes_per_slot = 1000;
  ModelConfig drafts = config(4, 4096);
  EXPECT_EQ(memory_of_plan(model, drafts), (1u << 20) + 4u * 1000u);
  drafts.rollback = 7;
  EXPECT_EQ(memory_of_plan(model, drafts), (1u << 20) + 4u * 8u * 1000u);
  EXPECT_NE(inspect_text(model, drafts, {}, Paint(false)).find("7 more"), std::string::npos);
  EXPECT_NE(inspect_json(model, drafts, {}).find("\"states_per_slot\":8"), std::string::npos);
}

TEST(Inspect, TheKindOfMemoryDecidesWhatIsKept) {
  GgufSummary model = small_model();
  EXPECT_TRUE(plan_of(model, config(4, 4096)).cuts_snapshots);
  EXPECT_TRUE(plan_of(model, config(4, 4096)).dense_slots);
  model.sliding_window = 512;
  EXPECT_FALSE(plan_of(model, config(4, 4096)).cuts_snapshots);
  EXPECT_TRUE(plan_of(model, config(8, 4096)).cuts_snapshots) << "the window holds a whole slot";
  model.sliding_window = 0;
  model.recurrent = true;
  EXPECT_FALSE(plan_of(model, config(4, 4096)).trims_anywhere);
  EXPECT_FALSE(plan_of(model, config(4, 4096)).dense_slots);
}

TEST(Inspect, SaysWhetherItFits) {
  Machine machine;
  machine.available_bytes = std::uint64_t{1} << 30;
  const std::string roomy = inspect_text(small_model(), config(4, 4096), machine, Paint(false));
  EXPECT_NE(roomy.find("yes: "), std::string::npos) << roomy;
  machine.available_bytes = 1 << 20;
  const std::string tight = inspect_text(small_model(), config(4, 4096), machine, Paint(false));
  EXPECT_NE(tight.find("no: "), std::string::npos) << tight;
}

TEST(Inspect, NamesOfStrangersCannotReachTheTerminal) {
  GgufSummary model = small_model();
  model.name = "\x1b[2J";
  model.architecture = "a\x1b]0;x\x07";
  EXPECT_EQ(inspect_text(model, config(4, 4096), {}, Paint(false)).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace chasqui::cli
