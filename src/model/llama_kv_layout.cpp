#include "model/llama_kv_layout.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include <ggml-backend.h>
#include <llama.h>

#include "base/error.h"
#include "base/pages.h"

namespace chasqui {
namespace {

// A state: magic, sequence, number of streams; for each stream the number of its cells, and where there are some their
// positions and tensors.
constexpr std::size_t kStreamsAt = 8;
constexpr std::size_t kCountsAt = 12;
// Of one cell: position, number of sequences, which.
constexpr std::size_t kCellBytes = 12;
// Before the bytes of the first tensor: whether V is transposed, number of layers, type, bytes of a row.
constexpr std::size_t kBeforeFirst = 20;

constexpr TokenCount kLeastBlock = 64;
constexpr TokenCount kMostBlock = 512;
constexpr std::size_t kBlockBytes = std::size_t{256} << 10;
constexpr TokenCount kVerified = 5;

template <class Number>
Number number_at(std::span<const std::byte> bytes, std::size_t at) {
  Number number = 0;
  std::memcpy(&number, &bytes[at], sizeof number);
  return number;
}

void append_number(std::vector<std::byte>& bytes, std::uint32_t number) {
  const auto* begin = reinterpret_cast<const std::byte*>(&number);
  bytes.insert(bytes.end(), begin, begin + sizeof number);
}

}  // namespace

// What libllama writes of a slot, told apart.
struct LlamaKvLayout::State {
  std::uint32_t magic = 0;
  std::uint32_t streams = 0;
  std::vector<Strand> strands;
  std::vector<std::vector<std::byte>> before;
  Place place;
};

// Ranges of cells that the copies of the first strand are made of; empty: they are not what they should be.
LlamaKvLayout::CellRanges LlamaKvLayout::ranges_of(const std::vector<TensorCopy>& copies, std::size_t row,
                                                   TokenCount tokens) {
  CellRanges ranges;
  for (const TensorCopy& copy : copies) {
    if (tokens == 0 || row == 0 || copy.size == 0 || copy.size % row != 0 || copy.offset % row != 0) break;
    const auto count = static_cast<TokenCount>(copy.size / row);
    if (count > tokens) return {};
    ranges.emplace_back(static_cast<std::uint32_t>(copy.offset / row), count);
    tokens -= count;
  }
  return tokens == 0 ? ranges : CellRanges{};
}

// Where the bytes of tensors end in a state whose first `end` bytes are known; 0: they are not what they should be.
std::size_t LlamaKvLayout::read_strands(const std::vector<TensorCopy>& copies, const CellRanges& ranges,
                                        std::span<const std::byte> bytes, std::size_t end, State& state) {
  TokenCount tokens = 0;
  for (const auto& [cell, count] : ranges) tokens += count;
  for (std::size_t i = 0; i < copies.size(); i += ranges.size()) {
    Strand strand{copies[i].size / static_cast<std::size_t>(ranges[0].second), 0};
    if (copies[i].offset < ranges[0].first * strand.bytes) return 0;
    strand.base = copies[i].offset - ranges[0].first * strand.bytes;
    const auto at = static_cast<std::size_t>(copies[i].host - bytes.data());
    if (at < end) return 0;
    state.before.emplace_back(bytes.begin() + static_cast<std::ptrdiff_t>(end),
                              bytes.begin() + static_cast<std::ptrdiff_t>(at));
    for (std::size_t r = 0; r < ranges.size(); ++r) {
      const TensorCopy& copy = copies[i + r];
      const bool fits = copy.tensor == copies[i].tensor &&
                        copy.offset == strand.base + ranges[r].first * strand.bytes &&
                        copy.size == strand.bytes * static_cast<std::size_t>(ranges[r].second);
      if (!fits) return 0;
    }
    end = at + strand.bytes * static_cast<std::size_t>(tokens);
    state.strands.push_back(strand);
    state.place.tensors.push_back(copies[i].tensor);
  }
  return end;
}

std::optional<LlamaKvLayout> LlamaKvLayout::find(llama_context* context, SlotId slot) {
  if (!TensorCopyRecorder::works()) return std::nullopt;
  LlamaKvLayout layout;
  auto state = state_of(context, slot, 1);
  llama_memory_seq_rm(llama_get_memory(context), slot.value, -1, -1);
  if (!state || !layout.learn(*state)) return std::nullopt;
  const bool good = layout.verify(context, slot);
  llama_memory_seq_rm(llama_get_memory(context), slot.value, -1, -1);
  return good ? std::optional(std::move(layout)) : std::nullopt;
}

bool LlamaKvLayout::learn(State& state) {
  magic_ = state.magic;
  streams_ = state.streams;
  strands_ = std::move(state.strands);
  before_ = std::move(state.before);
  for (const Strand& strand : strands_) bytes_per_token_ += strand.bytes;
  return bytes_per_token_ > 0;
}

std::optional<LlamaKvLayout::State> LlamaKvLayout::state_of(llama_context* context, SlotId slot, TokenCount tokens) {
  const std::size_t size = llama_state_seq_get_size(context, slot.value);
  Pages pages(size);
  const std::span<std::byte> bytes = pages.bytes();  // those of tensors stay untouched
  TensorCopyRecorder recorder;
  auto* const begin = reinterpret_cast<std::uint8_t*>(bytes.data());
  if (llama_state_seq_get_data(context, begin, size, slot.value) != size) return std::nullopt;
  const std::vector<TensorCopy>& copies = recorder.copies();
  if (copies.empty() || size < kCountsAt + sizeof(std::uint32_t)) return std::nullopt;

  State state;
  state.magic = number_at<std::uint32_t>(bytes, 0);
  state.streams = number_at<std::uint32_t>(bytes, kStreamsAt);
  const std::size_t stream = state.streams == 1 ? 0 : static_cast<std::size_t>(slot.value);
  const std::size_t cells_at = kCountsAt + sizeof(std::uint32_t) * (stream + 1);
  const auto count = static_cast<std::size_t>(tokens);
  std::size_t end = cells_at + kCellBytes * count;  // of what is known
  const auto first = static_cast<std::size_t>(copies[0].host - bytes.data());
  if (stream >= state.streams || first != end + kBeforeFirst) return std::nullopt;
  if (number_at<std::uint32_t>(bytes, cells_at - sizeof(std::uint32_t)) != count) return std::nullopt;

  const auto ranges = ranges_of(copies, number_at<std::uint64_t>(bytes, first - sizeof(std::uint64_t)), tokens);
  if (ranges.empty() || copies.size() % ranges.size() != 0) return std::nullopt;
  end = read_strands(copies, ranges, bytes, end, state);
  if (end == 0 || size != end + sizeof(std::uint32_t) * (state.streams - 1 - stream)) return std::nullopt;

  state.place.cells.assign(count, UINT32_MAX);
  std::size_t at = cells_at;
  for (const auto& [cell, length] : ranges) {
    for (TokenCount i = 0; i < length; ++i, at += kCellBytes) {
      const std::size_t position = number_at<std::uint32_t>(bytes, at);
      if (position >= count || state.place.cells[position] != UINT32_MAX) return std::nullopt;
      state.place.cells[position] = cell + static_cast<std::uint32_t>(i);
    }
  }
  return state;
}

std::optional<LlamaKvLayout::Place> LlamaKvLayout::place_of(llama_context* context, SlotId slot,
                                                            TokenCount tokens) const {
  auto state = state_of(context, slot, tokens);
  if (!state || state->streams != streams_ || state->strands != strands_) return std::nullopt;
  return std::move(state->place);
}

std::optional<LlamaKvLayout::Place> LlamaKvLayout::make_place(llama_context* context, SlotId slot,
                                                              TokenCount tokens) const {
  const std::size_t stream = streams_ == 1 ? 0 : static_cast<std::size_t>(slot.value);
  const auto count = static_cast<std::size_t>(tokens);
  std::vector<std::byte> head;
  const auto sequence = static_cast<std::uint32_t>(slot.value);
  for (const std::uint32_t number : {magic_, sequence, streams_}) append_number(head, number);
  for (std::size_t i = 0; i < stream; ++i) append_number(head, 0);
  append_number(head, static_cast<std::uint32_t>(tokens));
  for (std::uint32_t position = 0; position < count; ++position) {
    for (const std::uint32_t number : {position, std::uint32_t{1}, sequence}) append_number(head, number);
  }
  std::size_t size = head.size() + bytes_per_token_ * count + sizeof(std::uint32_t) * (streams_ - 1 - stream);
  for (const auto& before : before_) size += before.size();
  Pages pages(size);
  const std::span<std::byte> bytes = pages.bytes();
  std::memcpy(bytes.data(), head.data(), head.size());
  std::size_t at = head.size();
  for (std::size_t i = 0; i < strands_.size(); ++i) {
    std::ranges::copy(before_[i], bytes.begin() + static_cast<std::ptrdiff_t>(at));
    at += before_[i].size() + strands_[i].bytes * count;
  }
  std::memset(&bytes.front() + at, 0, size - at);

  TensorCopyRecorder recorder;
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(bytes.data());
  if (llama_state_seq_set_data(context, begin, size, slot.value) != size) return std::nullopt;
  const std::vector<TensorCopy>& copies = recorder.copies();
  const auto ranges = copies.empty() ? CellRanges{} : ranges_of(copies, strands_[0].bytes, tokens);
  if (ranges.empty() || copies.size() != ranges.size() * strands_.size()) return std::nullopt;
  Place place;
  for (const auto& [cell, length] : ranges) {
    for (TokenCount i = 0; i < length; ++i) place.cells.push_back(cell + static_cast<std::uint32_t>(i));
  }
  for (std::size_t i = 0; i < copies.size(); i += ranges.size()) place.tensors.push_back(copies[i].tensor);
  return place;
}

std::vector<LlamaKvLayout::Run> LlamaKvLayout::runs_of(const Place& place, TokenCount from, TokenCount count) {
  std::vector<Run> runs;
  for (TokenCount i = from; i < from + count; ++i) {
    const std::uint32_t cell = place.cells[static_cast<std::size_t>(i)];
    if (!runs.empty() && runs.back().cell + static_cast<std::uint32_t>(runs.back().count) == cell) {
      ++runs.back().count;
    } else {
      runs.push_back({cell, 1});
    }
  }
  return runs;
}

void LlamaKvLayout::copy_out(const Place& place, TokenCount from, TokenCount count, std::span<std::byte> block) const {
  CHECK(block.size() == bytes_per_token_ * static_cast<std::size_t>(count));
  const std::vector<Run> runs = runs_of(place, from, count);
  std::byte* to = block.data();
  for (std::size_t i = 0; i < strands_.size(); ++i) {
    const auto [bytes, base] = strands_[i];
    for (const Run& run : runs) {
      const std::size_t size = bytes * static_cast<std::size_t>(run.count);
      ggml_backend_tensor_get(place.tensors[i], to, base + run.cell * bytes, size);
      to += size;
    }
  }
}

void LlamaKvLayout::copy_in(const Place& place, TokenCount from, TokenCount count, std::span<const std::byte> block,
                            TokenCount tokens) const {
  CHECK(count <= tokens && block.size() == bytes_per_token_ * static_cast<std::size_t>(tokens));
  const std::vector<Run> runs = runs_of(place, from, count);
  const std::byte* strand = block.data();
  for (std::size_t i = 0; i < strands_.size(); ++i) {
    const auto [bytes, base] = strands_[i];
    const std::byte* at = strand;
    for (const Run& run : runs) {
      const std::size_t size = bytes * static_cast<std::size_t>(run.count);
      ggml_backend_tensor_set(place.tensors[i], at, base + run.cell * bytes, size);
      at += size;
    }
    strand += bytes * static_cast<std::size_t>(tokens);
  }
}

TokenCount LlamaKvLayout::block_tokens() const {
  TokenCount tokens = kLeastBlock;
  while (tokens < kMostBlock && static_cast<std::size_t>(tokens) * bytes_per_token_ < kBlockBytes) tokens *= 2;
  return tokens;
}

// A pattern goes into the slot, and comes out again; and what libllama says of the slot is the same when it comes from
// the blocks as when libllama itself has restored it.
bool LlamaKvLayout::verify(llama_context* context, SlotId slot) const {
  const auto state = [&] {
    std::vector<std::uint8_t> bytes(llama_state_seq_get_size(context, slot.value));
    bytes.resize(llama_state_seq_get_data(context, bytes.data(), bytes.size(), slot.value));
    return bytes;
  };
  std::vector<std::byte> pattern(bytes_per_token_ * kVerified);
  for (std::size_t i = 0; i < pattern.size(); ++i) pattern[i] = static_cast<std::byte>(i * 131 + i / 251);
  const auto place = make_place(context, slot, kVerified);
  if (!place) return false;
  copy_in(*place, 0, kVerified, pattern, kVerified);
  const std::vector<std::uint8_t> whole = state();
  llama_memory_seq_rm(llama_get_memory(context), slot.value, -1, -1);
  if (whole.empty() || llama_state_seq_set_data(context, whole.data(), whole.size(), slot.value) != whole.size()) {
    return false;
  }
  const auto again = place_of(context, slot, kVerified);
  if (!again) return false;
  std::vector<std::byte> out(pattern.size());
  copy_out(*again, 0, kVerified, out);
  return out == pattern && state() == whole;
}

}  // namespace chasqui
