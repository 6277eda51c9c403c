#include "check.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "core/batch.h"
#include "model/loaded_model.h"

namespace mkmodel {
namespace {

using chasqui::Batch;
using chasqui::DecodeStatus;
using chasqui::SlotId;
using chasqui::Token;
using Clock = std::chrono::steady_clock;

constexpr int kSlots = 16;
constexpr int kPrompt = 64;
constexpr int kSteps = 24;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

bool complain(const char* what) {
  std::printf("  FAILED: %s\n", what);
  return false;
}

// kPrompt tokens in `slot`, logits of the last.
DecodeStatus prefill(chasqui::Model& model, int slot, const std::vector<Token>& prompt) {
  Batch batch;
  batch.kind = Batch::Kind::prefill;
  for (int i = 0; i < kPrompt; ++i) {
    batch.rows.push_back({prompt[static_cast<std::size_t>(i)], i, SlotId{slot}, i + 1 == kPrompt});
  }
  return model.decode(batch);
}

// The most likely token; -1 when the row has no finite logit.
Token best(std::span<const float> logits) {
  const auto top = std::ranges::max_element(logits);
  return std::isfinite(*top) ? static_cast<Token>(top - logits.begin()) : -1;
}

// kSteps greedy steps of `slots` slots at once. Returns tokens a second, negative when a step failed.
double decode(chasqui::Model& model, int slots, std::vector<Token> tokens) {
  const Clock::time_point start = Clock::now();
  Batch batch;
  for (int step = 0; step < kSteps; ++step) {
    batch.clear();
    for (int slot = 0; slot < slots; ++slot) {
      batch.rows.push_back({tokens[static_cast<std::size_t>(slot)], kPrompt + step, SlotId{slot}, true});
    }
    if (model.decode(batch) != DecodeStatus::ok) return -1;
    for (int slot = 0; slot < slots; ++slot) {
      Token& token = tokens[static_cast<std::size_t>(slot)];
      token = best(model.logits(slot));
      if (token < 0) return -1;
    }
  }
  return slots * kSteps / seconds_since(start);
}

bool exercise(chasqui::Model& model, const std::vector<Token>& prompt) {
  std::vector<Token> next;
  const Clock::time_point start = Clock::now();
  for (int slot = 0; slot < kSlots; ++slot) {
    if (prefill(model, slot, prompt) != DecodeStatus::ok) return complain("prefill");
    next.push_back(best(model.logits(kPrompt - 1)));
  }
  std::printf("  prefill %.0f tokens/s\n", kSlots * kPrompt / seconds_since(start));
  if (std::ranges::count(next, next.front()) != kSlots || next.front() < 0) return complain("slots disagree");

  const double many = decode(model, kSlots, next);
  if (many < 0) return complain("decode of many rows");
  model.trim(SlotId{0}, 0);
  if (prefill(model, 0, prompt) != DecodeStatus::ok) return complain("prefill after a trim");
  if (best(model.logits(kPrompt - 1)) != next.front()) return complain("another token after a trim");
  const double one = decode(model, 1, next);
  if (one < 0) return complain("decode of one row");
  std::printf("  decode %.1f tokens/s with one row, %.1f with %d\n", one, many, kSlots);
  return true;
}

}  // namespace

bool check_model(const std::string& path, int threads) {
  const Clock::time_point start = Clock::now();
  auto loaded = chasqui::load_llama(path);
  if (!loaded) return complain(loaded.error().message.c_str());
  auto model = loaded->make({.slots = kSlots, .cells = 256 * kSlots, .threads = threads});
  if (!model) return complain(model.error().message.c_str());
  std::printf("%s: %s, %d tokens, loaded in %.2f s\n", path.c_str(), loaded->info.description.c_str(),
              loaded->info.vocabulary, seconds_since(start));

  std::string text = "The runner carries the message from one relay station to the next. ";
  while (text.size() < 1024) text += text;
  std::vector<Token> prompt = loaded->tokenizer->tokenize(text, chasqui::AddSpecial::yes, chasqui::ParseSpecial::no);
  if (prompt.size() < kPrompt) return complain("tokenization");
  prompt.resize(kPrompt);
  return exercise(**model, prompt);
}

}  // namespace mkmodel
