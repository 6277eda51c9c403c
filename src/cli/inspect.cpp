#include "cli/inspect.h"

#include <algorithm>
#include <cstdio>

#include "base/json_writer.h"
#include "model/window_layers.h"

namespace chasqui::cli {
namespace {

// Buffers of a step and of what is beside the model, for "does it fit": tens of MiB for small models, and a few
// hundred for large ones.
std::uint64_t beside(const GgufSummary& model) {
  constexpr std::uint64_t kLeast = std::uint64_t{64} << 20;
  return kLeast + model.tensor_bytes / 20;
}

std::uint64_t need(const GgufSummary& model, const ModelConfig& config, std::int64_t context, std::int32_t slots) {
  const auto rows = static_cast<std::uint64_t>(slots);
  const KvSize size = kv_size(kv_bytes_per_cell(model, config), model.layers, config.swa_full ? 0 : model.window_layers,
                              model.sliding_window, config.rows_max);
  const auto states = static_cast<std::uint64_t>(1 + config.rollback);
  return model.tensor_bytes + rows * size.of(static_cast<std::uint64_t>(context)) +
         rows * states * model.state_bytes_per_slot;
}

std::string right(const std::string& text, std::size_t width) {
  return text.size() >= width ? text : std::string(width - text.size(), ' ') + text;
}

std::string left(const std::string& text, std::size_t width) {
  return text.size() >= width ? text : text + std::string(width - text.size(), ' ');
}

std::string count_in_words(std::uint64_t count) {
  char text[32];
  const auto n = static_cast<double>(count);
  if (n >= 1e9) {
    std::snprintf(text, sizeof text, "%.1f B", n / 1e9);
  } else if (n >= 1e6) {
    std::snprintf(text, sizeof text, "%.1f M", n / 1e6);
  } else {
    std::snprintf(text, sizeof text, "%.0f", n);
  }
  return text;
}

std::string formats_in_words(const GgufSummary& model) {
  std::vector<std::pair<std::uint64_t, std::string>> sorted;
  for (const auto& [format, bytes] : model.formats) sorted.emplace_back(bytes, format);
  std::sort(sorted.rbegin(), sorted.rend());
  std::string out;
  for (const auto& [bytes, format] : sorted) out += (out.empty() ? "" : ", ") + format + " " + bytes_in_words(bytes);
  return out;
}

std::string memory_of_sequences(const ServingPlan& plan, const GgufSummary& model) {
  if (!plan.trims_anywhere) {
    return std::string(model.hybrid ? "positions and a state" : "a state") +
           " for each slot: kept as checkpoints, which are good as a whole only";
  }
  if (plan.unified) return "one pool of cells for all slots";
  return "a stream of cells for each slot, kept adjacent";
}

class Lines {
 public:
  explicit Lines(const Paint& paint) : paint_(paint) {}
  void line(const std::string& name, const std::string& value) {
    if (!value.empty()) text_ += "  " + left(name, 16) + harmless(value) + '\n';
  }
  void title(const std::string& name) { text_ += std::string(paint_.bold) + name + std::string(paint_.off) + '\n'; }
  void raw(const std::string& text) { text_ += text; }
  std::string take() { return std::move(text_); }

 private:
  const Paint& paint_;
  std::string text_;
};

void describe(const GgufSummary& model, Lines& out) {
  out.title(model.name.empty() ? "model" : harmless(model.name));
  out.line("architecture", model.architecture);
  if (model.kind != "model") out.line("kind", model.kind + (model.adapter.empty() ? "" : " (" + model.adapter + ")"));
  out.line("parameters", count_in_words(model.parameters) + " in " + std::to_string(model.tensors) + " tensors, " +
                             std::to_string(model.layers) + " layers of width " +
                             std::to_string(model.embedding_length));
  if (model.experts > 0) {
    out.line("experts", std::to_string(model.experts) + ", " + std::to_string(model.experts_used) + " for each token");
  }
  out.line("quantization", formats_in_words(model));
  out.line("context",
           std::to_string(model.context_trained) + " tokens trained" +
               (model.sliding_window > 0
                    ? ", a window of " + std::to_string(model.sliding_window) + " slides in " +
                          (model.window_layers > 0 ? std::to_string(model.window_layers) : "some") + " layers"
                    : ""));
  out.line("vocabulary", std::to_string(model.vocabulary) + " tokens (" + model.vocabulary_type + ")");
  out.line("chat template", model.chat_template.empty()
                                ? "none: /v1/chat/completions needs --chat-template-file"
                                : "there is one, of " + std::to_string(model.chat_template.size()) + " bytes");
}

void draw_table(const GgufSummary& model, const ModelConfig& config, std::uint64_t free, const Paint& paint,
                Lines& out) {
  const MemoryTable table = memory_table(model, config);
  std::string head = "  " + left("context", 10);
  for (const std::int32_t slots : table.slots) {
    head += right(std::to_string(slots) + (slots == 1 ? " slot" : " slots"), 13);
  }
  out.raw(head + '\n');
  for (std::size_t row = 0; row < table.contexts.size(); ++row) {
    std::string line = "  " + left(std::to_string(table.contexts[row]), 10);
    for (std::size_t i = 0; i < table.slots.size(); ++i) {
      const std::uint64_t bytes = table.bytes[row * table.slots.size() + i];
      const bool fits = bytes + beside(model) <= free;
      line += std::string(fits ? paint.green : paint.red) + right(bytes_in_words(bytes) + (fits ? "  " : " !"), 13) +
              std::string(paint.off);
    }
    out.raw(line + '\n');
  }
  out.raw("  ! does not fit into the " + bytes_in_words(free) + " that are free now, " + bytes_in_words(beside(model)) +
          " of them for computing\n");
}

}  // namespace

std::uint64_t kv_bytes_per_cell(const GgufSummary& model, const ModelConfig& config) {
  return static_cast<std::uint64_t>(static_cast<double>(model.key_values_per_cell) * bytes_per_value(config.kv_keys) +
                                    static_cast<double>(model.value_values_per_cell) *
                                        bytes_per_value(config.kv_values));
}

std::uint64_t memory_of_plan(const GgufSummary& model, const ModelConfig& config) {
  const std::int32_t slots = config.unified ? 1 : std::max(config.slots, 1);
  return need(model, config, config.cells / slots, slots);
}

ModelInfo info_of(const GgufSummary& model) {
  ModelInfo info;
  info.size_bytes = model.tensor_bytes;
  info.context_trained = static_cast<TokenCount>(model.context_trained);
  info.kv_bytes_per_cell = 2 * (model.key_values_per_cell + model.value_values_per_cell);
  info.layers = static_cast<std::int32_t>(model.layers);
  info.sliding_window = static_cast<TokenCount>(model.sliding_window);
  info.window_layers = model.window_layers;
  info.state_bytes_per_slot = model.state_bytes_per_slot;
  return info;
}

ServingPlan plan_of(const GgufSummary& model, const ModelConfig& config) {
  ServingPlan plan;
  plan.slots = config.slots;
  plan.cells = config.cells;
  plan.unified = config.unified;
  plan.cells_per_slot = config.unified ? plan.cells : plan.cells / std::max(plan.slots, 1);
  plan.trims_anywhere = model.trims_anywhere();
  plan.cuts_snapshots =
      plan.trims_anywhere && (model.sliding_window == 0 || model.sliding_window >= plan.cells_per_slot);
  plan.dense_slots = !plan.unified && plan.trims_anywhere;
  return plan;
}

MemoryTable memory_table(const GgufSummary& model, const ModelConfig& config) {
  MemoryTable table;
  table.slots = {1, 2, 4, 8, 16};
  const std::int64_t most = model.context_trained > 0 ? model.context_trained : 4096;
  for (std::int64_t context = 1024; context < most; context *= 2) table.contexts.push_back(context);
  table.contexts.push_back(most);
  if (table.contexts.size() > 8) table.contexts.erase(table.contexts.begin(), table.contexts.end() - 8);
  for (const std::int64_t context : table.contexts) {
    for (const std::int32_t slots : table.slots) table.bytes.push_back(need(model, config, context, slots));
  }
  return table;
}

std::string inspect_text(const GgufSummary& model, const ModelConfig& config, const Machine& machine,
                         const Paint& paint) {
  Lines out(paint);
  describe(model, out);
  out.title("needs");
  out.line("weights", bytes_in_words(model.tensor_bytes));
  if (model.kind != "model") {
    out.raw("  It is no model of its own: it goes onto one.\n");
    return out.take();
  }
  out.line("KV of a token", bytes_in_words(kv_bytes_per_cell(model, config)));
  if (model.state_bytes_per_slot > 0) {
    const std::string more = ", and " + std::to_string(config.rollback) + " more to take back draft tokens";
    out.line("state of a slot",
             "about " + bytes_in_words(model.state_bytes_per_slot) + (config.rollback > 0 ? more : ""));
  }
  out.raw("\n");
  draw_table(model, config, machine.free_bytes(), paint, out);
  const ServingPlan plan = plan_of(model, config);
  out.title("served like this");
  out.line("slots", std::to_string(plan.slots) + " of " + std::to_string(plan.cells_per_slot) + " tokens");
  out.line("memory", memory_of_sequences(plan, model));
  out.line("prompts alike", plan.cuts_snapshots ? "what they begin with in common is computed once, whatever its length"
                                                : "what was computed is used again as a whole, from checkpoints");
  const std::uint64_t wanted = need(model, config, plan.cells_per_slot, plan.unified ? 1 : plan.slots);
  const bool fits = wanted + beside(model) <= machine.free_bytes();
  out.line("fits", (fits ? "yes: " : "no: ") + bytes_in_words(wanted) + " of " + bytes_in_words(machine.free_bytes()) +
                       (fits ? "" : "; fewer slots (-np), a smaller context (-c), or -ctk q8_0 -ctv q8_0 need less"));
  return out.take();
}

std::string inspect_json(const GgufSummary& model, const ModelConfig& config, const Machine& machine) {
  const ServingPlan plan = plan_of(model, config);
  const MemoryTable table = memory_table(model, config);
  std::string out;
  JsonWriter w(out);
  w.begin_object();
  w.field("name", model.name);
  w.field("architecture", model.architecture);
  w.field("kind", model.kind);
  w.field("adapter", model.adapter);
  w.field("parameters", model.parameters);
  w.field("tensors", model.tensors);
  w.field("file_bytes", model.file_bytes);
  w.field("weights_bytes", model.tensor_bytes);
  w.field("quantization", model.main_format());
  w.field("layers", model.layers);
  w.field("embedding_length", model.embedding_length);
  w.field("context_trained", model.context_trained);
  w.field("sliding_window", model.sliding_window);
  w.field("window_layers", model.window_layers);
  w.field("experts", model.experts);
  w.field("vocabulary", model.vocabulary);
  w.field("vocabulary_type", model.vocabulary_type);
  w.field("chat_template", !model.chat_template.empty());
  w.field("kv_bytes_per_token", kv_bytes_per_cell(model, config));
  w.field("state_bytes_per_slot", model.state_bytes_per_slot);
  w.field("states_per_slot", model.state_bytes_per_slot > 0 ? 1 + config.rollback : 0);
  w.begin_object("plan");
  w.field("slots", plan.slots);
  w.field("cells", plan.cells);
  w.field("cells_per_slot", plan.cells_per_slot);
  w.field("unified", plan.unified);
  w.field("trims_anywhere", plan.trims_anywhere);
  w.field("cuts_snapshots", plan.cuts_snapshots);
  w.field("dense_slots", plan.dense_slots);
  w.end_object();
  w.field("free_bytes", machine.free_bytes());
  w.begin_array("memory");
  for (std::size_t i = 0; i < table.bytes.size(); ++i) {
    w.begin_object();
    w.field("context", table.contexts[i / table.slots.size()]);
    w.field("slots", table.slots[i % table.slots.size()]);
    w.field("bytes", table.bytes[i]);
    w.field("fits", table.bytes[i] + beside(model) <= machine.free_bytes());
    w.end_object();
  }
  w.end_array();
  w.end_object();
  return out + "\n";
}

}  // namespace chasqui::cli
