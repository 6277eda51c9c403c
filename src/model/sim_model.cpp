#include "model/sim_model.h"

#include <algorithm>
#include <cstring>
#include <ranges>
#include <utility>

#include "base/error.h"
#include "base/mixed_bits.h"
#include "model/sim_words.h"

namespace chasqui {
namespace {

constexpr float kChosen = 100.0f;  // far enough above the rest for any temperature and penalty
constexpr float kRunnerUp = 50.0f;
constexpr TokenCount kCellsOfBlock = 16;

// One position of a snapshot.
struct SavedToken {
  std::int64_t token = 0;
  std::uint64_t adapters = 0;
};

}  // namespace

SimModel::SimModel(const std::shared_ptr<const SimTokenizer>& tokenizer, const ModelConfig& config, SimOptions options)
    : SimModel(tokenizer->vocabulary(), std::make_shared<SimWords>(tokenizer, options.answer_tokens), config, options) {
}

SimModel::SimModel(TokenCount vocabulary, std::shared_ptr<const SimVoice> voice, const ModelConfig& config,
                   SimOptions options)
    : voice_(std::move(voice)), options_(std::move(options)) {
  CHECK(config.slots >= 1 && config.rows_max >= config.slots);
  shape_.vocabulary = vocabulary;
  shape_.slots = config.slots;
  shape_.cells = config.cells > 0 ? config.cells : options_.context * config.slots;
  shape_.cells_per_slot = config.unified ? shape_.cells : shape_.cells / config.slots;
  if (config.cells_per_slot_max > 0) shape_.cells_per_slot = std::min(shape_.cells_per_slot, config.cells_per_slot_max);
  shape_.rows_max = config.rows_max;
  shape_.outputs_max = std::clamp(config.outputs_max, config.slots, config.rows_max);
  shape_.unified = config.unified;
  shape_.kv_block = kCellsOfBlock;
  shape_.shifts = true;
  shape_.kv_token_bytes = sizeof(SavedToken);
  slots_.resize(static_cast<std::size_t>(shape_.slots));
}

SimModel::Slot& SimModel::slot_of(SlotId id) {
  CHECK(id.value >= 0 && id.value < shape_.slots);
  return slots_[static_cast<std::size_t>(id.value)];
}

DecodeStatus SimModel::decode(const Batch& batch) {
  check(batch);
  ++decodes_;
  const auto rows = static_cast<Duration::rep>(batch.rows.size());
  const Duration row_cost = batch.kind == Batch::Kind::decode ? options_.decode_row : options_.prefill_row;
  if (options_.spend) options_.spend(options_.step + rows * row_cost);
  if (decodes_ == fail_at_) return fail_status_;
  if (abort_.load(std::memory_order_relaxed)) return DecodeStatus::aborted;
  if (!fits(batch)) return DecodeStatus::no_room;

  const auto width = static_cast<std::size_t>(shape_.vocabulary);
  logits_.resize(std::max(logits_.size(), batch.rows.size() * width));
  output_.assign(batch.rows.size(), 0);
  for (std::size_t i = 0; i < batch.rows.size(); ++i) {
    const Row& row = batch.rows[i];
    Slot& slot = slot_of(row.slot);
    append(slot, row.token, id_of(batch.adapters));
    if (!row.output) continue;
    output_[i] = 1;
    if (slot.prompt == 0) slot.prompt = slot.tokens.size();
    write_logits(slot, std::span(logits_).subspan(i * width, width));
  }
  return DecodeStatus::ok;
}

// What libllama asks of a batch, and what makes it fast: dense and ascending.
void SimModel::check(const Batch& batch) {
  CHECK(!batch.rows.empty() && batch.rows.size() <= static_cast<std::size_t>(shape_.rows_max));
  const Row* before = nullptr;
  TokenCount expected = 0;
  for (const Row& row : batch.rows) {
    CHECK(before == nullptr || before->slot <= row.slot, "slots must ascend");
    const bool first_of_slot = before == nullptr || before->slot != row.slot;
    expected = first_of_slot ? static_cast<TokenCount>(slot_of(row.slot).tokens.size()) : expected + 1;
    CHECK(row.position == expected, "positions must continue what the slot holds");
    CHECK((row.token >= 0) == (batch.unit == nullptr) && row.token < shape_.vocabulary);
    before = &row;
  }
  const auto outputs = std::ranges::count_if(batch.rows, &Row::output);
  CHECK(outputs <= shape_.outputs_max, "more output rows than the model has room for");
}

bool SimModel::fits(const Batch& batch) {
  if (cells_used_ + static_cast<TokenCount>(batch.rows.size()) > shape_.cells) return false;
  return std::ranges::all_of(batch.rows, [this](const Row& row) { return row.position < shape_.cells_per_slot; });
}

void SimModel::append(Slot& slot, Token token, std::uint64_t adapters) {
  const std::uint64_t before = slot.hashes.empty() ? mixed_bits(options_.seed) : slot.hashes.back();
  slot.adapters = slot.hashes.empty() ? adapters : slot.adapters;
  CHECK(slot.adapters == adapters, "a row with other adapters than those before it in its slot");
  slot.tokens.push_back(token);
  slot.hashes.push_back(
      mixed_bits((before ^ adapters) + static_cast<std::uint64_t>(token) * 0x9E3779B97F4A7C15ull + 1));
  ++cells_used_;
}

std::span<float> SimModel::logits(std::int32_t row) {
  const auto index = static_cast<std::size_t>(row);
  CHECK(row >= 0 && index < output_.size() && output_[index] != 0, "not an output row of the last decode");
  const auto width = static_cast<std::size_t>(shape_.vocabulary);
  return std::span(logits_).subspan(index * width, width);
}

void SimModel::trim(SlotId id, TokenCount keep) {
  Slot& slot = slot_of(id);
  const auto size = static_cast<TokenCount>(slot.tokens.size());
  CHECK(keep >= 0 && keep <= size, "a trim cannot keep more than there is");
  cells_used_ -= size - keep;
  slot.tokens.resize(static_cast<std::size_t>(keep));
  slot.hashes.resize(static_cast<std::size_t>(keep));
  if (slot.tokens.size() < slot.prompt) slot.prompt = 0;
}

void SimModel::reuse(SlotId id, TokenCount keep) {
  trim(id, keep);
  slot_of(id).prompt = 0;
}

// What is left goes on as if the others were still there, as keys and values do.
void SimModel::shift(SlotId id, TokenCount from, TokenCount to) {
  Slot& slot = slot_of(id);
  CHECK(from >= 0 && from < to && std::cmp_less(to, slot.tokens.size()), "a shift of what the slot does not hold");
  slot.tokens.erase(slot.tokens.begin() + from, slot.tokens.begin() + to);
  slot.hashes.erase(slot.hashes.begin() + from, slot.hashes.begin() + to);
  slot.prompt = std::clamp(slot.prompt, std::size_t{1}, slot.tokens.size());
  cells_used_ -= to - from;
}

void SimModel::move(SlotId from, SlotId to) {
  CHECK(slot_of(to).tokens.empty(), "a move into a slot that holds something");
  std::swap(slot_of(from), slot_of(to));
}

void SimModel::exchange(SlotId a, SlotId b) { std::swap(slot_of(a), slot_of(b)); }

// The tokens, and the adapters that they were computed with, are all that a slot is made of.
KvSnapshotPtr SimModel::copy_out(SlotId id, TokenCount from, TokenCount to) {
  const Slot& held = slot_of(id);
  CHECK(from >= 0 && from < to && std::cmp_less_equal(to, held.tokens.size()), "a copy of what the slot does not hold");
  CHECK(from % shape_.kv_block == 0, "a copy that does not begin with a block");
  const auto tokens = static_cast<std::size_t>(to - from);
  auto copy = KvSnapshot::with_room(tokens * sizeof(SavedToken), to - from, shape_.kv_block);
  auto position = static_cast<std::size_t>(from);
  for (std::size_t i = 0; i < copy->blocks().size(); ++i) {
    const std::span<std::byte> bytes = copy->writable(i);
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(SavedToken), ++position) {
      const SavedToken saved{held.tokens[position], held.adapters};
      std::memcpy(&bytes[at], &saved, sizeof saved);
    }
  }
  return copy;
}

bool SimModel::restore(SlotId id, const KvSnapshot& snapshot, TokenCount keep) {
  return restore_piece(id, snapshot, keep, 0, keep);
}

// Between the pieces it holds no more than what has come.
bool SimModel::restore_piece(SlotId id, const KvSnapshot& snapshot, TokenCount keep, TokenCount from, TokenCount to) {
  CHECK(keep <= snapshot.tokens());
  if (!takes_piece(id, keep, from, to)) return false;
  const std::size_t bytes = static_cast<std::size_t>(snapshot.tokens()) * sizeof(SavedToken);
  if (snapshot.block_tokens() != shape_.kv_block || snapshot.size() != bytes) return false;
  for (TokenCount i = from; i < to; ++i) {
    const KvBlock& block = *snapshot.blocks()[static_cast<std::size_t>(i / shape_.kv_block)];
    SavedToken saved;
    std::memcpy(&saved, &block.bytes()[static_cast<std::size_t>(i % shape_.kv_block) * sizeof saved], sizeof saved);
    append(slot_of(id), static_cast<Token>(saved.token), saved.adapters);
  }
  return true;
}

bool SimModel::copy_piece(SlotId source, SlotId id, TokenCount keep, TokenCount from, TokenCount to) {
  const Slot& held = slot_of(source);
  CHECK(std::cmp_less_equal(keep, held.tokens.size()), "a copy of what the slot does not hold");
  if (!takes_piece(id, keep, from, to)) return false;
  for (TokenCount i = from; i < to; ++i) {
    append(slot_of(id), held.tokens[static_cast<std::size_t>(i)], held.adapters);
  }
  return true;
}

bool SimModel::takes_piece(SlotId id, TokenCount keep, TokenCount from, TokenCount to) {
  const Slot& slot = slot_of(id);
  CHECK(std::cmp_equal(slot.tokens.size(), from), "a restore into a slot that holds something else");
  CHECK(from >= 0 && from % shape_.kv_block == 0 && from <= to && to <= keep && keep <= shape_.cells_per_slot);
  if (cells_used_ + keep - from <= shape_.cells) return true;
  trim(id, 0);
  return false;
}

void SimModel::fail_decode(std::uint64_t calls, DecodeStatus status) {
  fail_at_ = decodes_ + calls;
  fail_status_ = status;
}

void SimModel::write_logits(const Slot& slot, std::span<float> row) const {
  const SimHistory history{slot.tokens, slot.hashes.back(), slot.prompt};
  const Duration hang = voice_->hang(history);
  if (options_.spend && hang > Duration::zero()) options_.spend(hang);
  const SimVoice::Next next = voice_->next(history);
  std::ranges::fill(row, 0.0f);
  row[static_cast<std::size_t>(next.runner_up)] = kRunnerUp;
  row[static_cast<std::size_t>(next.chosen)] = kChosen;
}

}  // namespace chasqui
