#include "model/sim_model.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <ranges>
#include <utility>

#include "base/error.h"

namespace chasqui {
namespace {

constexpr float kChosen = 100.0f;  // far enough above the rest for any temperature and penalty
constexpr float kRunnerUp = 50.0f;
constexpr int kHangSecondsMax = 3600;
constexpr std::size_t kNoEndAfterControl = 16;  // tokens; covers "assistant\n" and a few words

// The finaliser of splitmix64: every input bit reaches every output bit.
std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9ull;
  x ^= x >> 27;
  x *= 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

bool begins_with(std::span<const Token> tokens, std::span<const Token> beginning) {
  return tokens.size() >= beginning.size() && std::ranges::equal(tokens.first(beginning.size()), beginning);
}

// Index of the last `wanted` in tokens[0 … end), or tokens.size() when there is none.
std::size_t find_last(std::span<const Token> tokens, std::size_t end, Token wanted) {
  while (end > 0) {
    if (tokens[--end] == wanted) return end;
  }
  return tokens.size();
}

}  // namespace

SimModel::SimModel(std::shared_ptr<const SimTokenizer> tokenizer, const ModelConfig& config, SimOptions options)
    : tokenizer_(std::move(tokenizer)), options_(std::move(options)) {
  CHECK(config.slots >= 1 && config.rows_max >= config.slots && options_.answer_tokens >= 1);
  shape_.vocabulary = tokenizer_->vocabulary();
  shape_.slots = config.slots;
  shape_.cells = config.cells > 0 ? config.cells : options_.context * config.slots;
  shape_.cells_per_slot = config.unified ? shape_.cells : shape_.cells / config.slots;
  shape_.rows_max = config.rows_max;
  shape_.outputs_max = std::clamp(config.outputs_max, config.slots, config.rows_max);
  shape_.unified = config.unified;
  assistant_ = tokenizer_->tokenize("assistant\n", AddSpecial::no, ParseSpecial::no);
  user_says_ = tokenizer_->tokenize("user\nsay:", AddSpecial::no, ParseSpecial::no);
  user_hangs_ = tokenizer_->tokenize("user\nhang:", AddSpecial::no, ParseSpecial::no);
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
    hang_if_asked(slot);
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
    CHECK(row.token >= 0 && row.token < shape_.vocabulary);
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
  const std::uint64_t before = slot.hashes.empty() ? mix(options_.seed) : slot.hashes.back();
  slot.adapters = slot.hashes.empty() ? adapters : slot.adapters;
  CHECK(slot.adapters == adapters, "a row with other adapters than those before it in its slot");
  slot.tokens.push_back(token);
  slot.hashes.push_back(mix((before ^ adapters) + static_cast<std::uint64_t>(token) * 0x9E3779B97F4A7C15ull + 1));
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
}

void SimModel::move(SlotId from, SlotId to) {
  CHECK(slot_of(to).tokens.empty(), "a move into a slot that holds something");
  std::swap(slot_of(from), slot_of(to));
}

void SimModel::exchange(SlotId a, SlotId b) { std::swap(slot_of(a), slot_of(b)); }

// The tokens, and the adapters that they were computed with, are all that a slot is made of.
KvSnapshotPtr SimModel::snapshot(SlotId id, TokenCount tokens) {
  const Slot& held = slot_of(id);
  CHECK(std::cmp_equal(held.tokens.size(), tokens), "a snapshot of what the slot does not hold");
  const auto bytes = std::as_bytes(std::span(held.tokens));
  const auto copy = std::make_shared<KvSnapshot>(bytes.size() + sizeof held.adapters, tokens);
  std::ranges::copy(bytes, copy->bytes().begin());
  std::memcpy(copy->bytes().data() + bytes.size(), &held.adapters, sizeof held.adapters);
  return copy;
}

bool SimModel::restore(SlotId id, const KvSnapshot& snapshot, TokenCount keep) {
  Slot& slot = slot_of(id);
  CHECK(slot.tokens.empty(), "a restore into a slot that holds something");
  CHECK(keep >= 0 && keep <= snapshot.tokens() && keep <= shape_.cells_per_slot);
  if (cells_used_ + keep > shape_.cells) return false;
  const std::size_t end = static_cast<std::size_t>(snapshot.tokens()) * sizeof(Token);
  std::uint64_t adapters = 0;
  CHECK(snapshot.bytes().size() == end + sizeof adapters, "a snapshot of another model");
  std::memcpy(&adapters, &snapshot.bytes()[end], sizeof adapters);
  for (TokenCount i = 0; i < keep; ++i) {
    Token token = 0;
    std::memcpy(&token, &snapshot.bytes()[static_cast<std::size_t>(i) * sizeof token], sizeof token);
    append(slot, token, adapters);
  }
  return true;
}

void SimModel::fail_decode(std::uint64_t calls, DecodeStatus status) {
  fail_at_ = decodes_ + calls;
  fail_status_ = status;
}

void SimModel::write_logits(const Slot& slot, std::span<float> row) const {
  std::ranges::fill(row, 0.0f);
  const Token runner_up = word(slot);
  Token chosen = echo(slot);
  if (chosen < 0) chosen = ends(slot) ? SimTokenizer::kImEnd : runner_up;
  row[static_cast<std::size_t>(runner_up)] = kRunnerUp;
  row[static_cast<std::size_t>(chosen)] = kChosen;
}

// Words, now and then a full stop, and an é in two tokens, so that half characters occur.
Token SimModel::word(const Slot& slot) const {
  if (slot.tokens.back() == 0xC3) return 0xA9;
  const std::uint64_t hash = slot.hashes.back();
  if (hash % 13 == 0) return '.';
  if (hash % 61 == 0) return 0xC3;
  const auto words = static_cast<std::uint64_t>(shape_.vocabulary - SimTokenizer::kFirstWord);
  return SimTokenizer::kFirstWord + static_cast<Token>((hash >> 8) % words);
}

bool SimModel::ends(const Slot& slot) const {
  if (slot.tokens.back() == 0xC3) return false;
  const std::size_t near = std::min(slot.tokens.size(), kNoEndAfterControl);
  const auto control = [](Token t) { return t >= SimTokenizer::kImStart && t < SimTokenizer::kFirstWord; };
  if (std::ranges::any_of(std::span(slot.tokens).last(near), control)) return false;
  return mix(slot.hashes.back()) % static_cast<std::uint64_t>(options_.answer_tokens) == 0;
}

// Nothing when the history does not end in an answer to such a message.
std::optional<SimModel::Turn> SimModel::last_turn(const Slot& slot, std::span<const Token> begin) const {
  const std::span<const Token> all = slot.tokens;
  const std::size_t answer = find_last(all, all.size(), SimTokenizer::kImStart);
  if (answer == all.size() || !begins_with(all.subspan(answer + 1), assistant_)) return std::nullopt;
  const std::size_t end = find_last(all, answer, SimTokenizer::kImEnd);
  if (end == all.size()) return std::nullopt;
  const std::size_t turn = find_last(all, end, SimTokenizer::kImStart);
  if (turn == all.size() || !begins_with(all.subspan(turn + 1), begin)) return std::nullopt;

  const std::size_t text_begin = turn + 1 + begin.size();
  std::string text = detokenize(*tokenizer_, all.subspan(text_begin, end - text_begin));
  if (text.starts_with(' ')) text.erase(0, 1);
  return Turn{std::move(text), all.size() - (answer + 1 + assistant_.size())};
}

// The next token of the answer to "say: TEXT"; -1 when there is none.
Token SimModel::echo(const Slot& slot) const {
  const auto turn = last_turn(slot, user_says_);
  if (!turn) return -1;
  const std::vector<Token> reply = tokenizer_->tokenize(turn->text, AddSpecial::no, ParseSpecial::no);
  return turn->said < reply.size() ? reply[turn->said] : SimTokenizer::kImEnd;
}

void SimModel::hang_if_asked(const Slot& slot) const {
  const auto turn = last_turn(slot, user_hangs_);
  if (!turn || turn->said > 0 || !options_.spend) return;
  int seconds_wanted = 0;
  std::from_chars(turn->text.data(), turn->text.data() + turn->text.size(), seconds_wanted);
  options_.spend(seconds(std::clamp(seconds_wanted, 0, kHangSecondsMax)));
}

}  // namespace chasqui
