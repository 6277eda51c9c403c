#include "record/recorded_result.h"

#include <algorithm>

namespace chasqui {
namespace {

constexpr std::int64_t kForced = 1;
constexpr std::int64_t kComputed = 2;
constexpr std::int64_t kEndOfGeneration = 4;
constexpr std::int64_t kTimeIsUp = 8;
constexpr std::int64_t kOutdented = 16;
constexpr std::int64_t kStopped = 32;

std::int64_t flags_of(const Sample& sample) {
  return (sample.forced ? kForced : 0) | (sample.computed ? kComputed : 0) |
         (sample.end_of_generation ? kEndOfGeneration : 0) | (sample.time_is_up ? kTimeIsUp : 0) |
         (sample.outdented ? kOutdented : 0) | (sample.stopped ? kStopped : 0);
}

constexpr std::int64_t kBytesMax = std::int64_t{1} << 48;

bool is_count(std::int64_t value, std::int64_t most) { return value >= 0 && value <= most; }

}  // namespace

void RecordedResult::set(const BatchResult& result, std::span<const Token> stand_ins) {
  status_ = result.status;
  finished_ = result.finished;
  compute_ = result.compute;
  cpu_ = result.cpu;
  saving_ = result.saving;
  restoring_ = result.restoring;
  drafted_ = result.drafted;
  drafting_ = result.drafting;
  draft_reading_ = result.draft_reading;
  learning_ = result.learning;
  constraining_ = result.constraining;
  constrained_tokens_ = result.constrained_tokens;
  for (auto* table : {&samples_, &put_off_, &prompts_, &snapshots_, &not_restored_, &agreed_}) table->clear();
  for (std::size_t i = 0; i < result.samples.size(); ++i) {
    const Sample& sample = result.samples[i];
    samples_.insert(samples_.end(), {static_cast<std::int64_t>(sample.request.value), stand_ins[i], flags_of(sample)});
  }
  for (const RequestId id : result.put_off) put_off_.push_back(static_cast<std::int64_t>(id.value));
  for (const PromptChances& prompt : result.prompts) {
    prompts_.insert(prompts_.end(), {prompt.from, static_cast<std::int64_t>(prompt.chances.size())});
  }
  for (const KvSnapshotPtr& snapshot : result.snapshots) {
    if (!snapshot) {
      snapshots_.insert(snapshots_.end(), {-1, 0, 0});
      continue;
    }
    snapshots_.insert(snapshots_.end(),
                      {static_cast<std::int64_t>(snapshot->size()), snapshot->tokens(), snapshot->block_tokens()});
  }
  for (const std::size_t place : result.not_restored) not_restored_.push_back(static_cast<std::int64_t>(place));
}

void RecordedResult::said(RequestId request, std::vector<Token>& out) const {
  out.clear();
  for (std::size_t i = 0; i < samples_.size(); i += kSampleColumns) {
    if (samples_[i] == static_cast<std::int64_t>(request.value)) out.push_back(static_cast<Token>(samples_[i + 1]));
  }
}

std::optional<std::int64_t> RecordedResult::agreed(RequestId request) const {
  for (std::size_t i = 0; i < agreed_.size(); i += 2) {
    if (agreed_[i] == static_cast<std::int64_t>(request.value)) return agreed_[i + 1];
  }
  return std::nullopt;
}

std::optional<std::string> RecordedResult::misfit(const Batch& batch) const {
  if (snapshots_.size() != kSnapshotColumns * batch.saves.size()) return "there is not one copy for each save";
  for (std::size_t i = 0; i < batch.saves.size(); ++i) {
    const std::int64_t* const snapshot = &snapshots_[kSnapshotColumns * i];
    if (snapshot[0] < 0) continue;
    const auto& [slot, tokens, from] = batch.saves[i];
    const bool in_blocks = snapshot[2] > 0 && snapshot[0] % std::max<std::int64_t>(snapshot[1], 1) == 0;
    if (!is_count(snapshot[0], kBytesMax) || snapshot[1] != tokens - from)
      return "a copy has other tokens than its save";
    if (!in_blocks && (snapshot[2] != 0 || from != 0)) return "a copy is not in blocks";
  }
  for (const std::int64_t place : not_restored_) {
    if (!is_count(place, static_cast<std::int64_t>(batch.restores.size()) - 1)) return "a restore failed that was none";
  }
  if (status_ != DecodeStatus::ok || batch.rows.empty()) return std::nullopt;
  std::size_t at = 0;
  std::size_t off = 0;
  std::size_t told = 0;
  for (const BatchPart& part : batch.parts) {
    const auto id = static_cast<std::int64_t>(part.request->id.value);
    const bool waits = off < put_off_.size() && put_off_[off] == id;
    if (waits) ++off;
    if (part.tells && part.rows > (waits ? 1 : 0)) {
      if (++told * kPromptColumns > prompts_.size()) return "a prompt tells nothing";
      const std::int64_t* const prompt = &prompts_[(told - 1) * kPromptColumns];
      const auto prompt_tokens = static_cast<std::int64_t>(part.request->prompt.size());
      if (!is_count(prompt[0], prompt_tokens) || !is_count(prompt[1], part.rows)) return "a prompt tells too much";
    }
    if (!part.samples || waits) continue;
    std::int64_t accepted = 0;
    bool behind = false;  // of what is not computed yet
    for (; at < samples_.size() && samples_[at] == id; at += kSampleColumns) {
      behind = behind || (samples_[at + 2] & kComputed) == 0;
      if (!behind) ++accepted;
    }
    if (!behind || accepted > part.draft_tokens) return "a request said what its rows cannot have said";
  }
  if (at != samples_.size()) return "a request spoke out of turn";
  return std::nullopt;
}

void RecordedResult::give(BatchResult& result) const {
  result.clear();
  result.status = status_;
  result.finished = finished_;
  result.compute = compute_;
  result.cpu = cpu_;
  result.saving = saving_;
  result.restoring = restoring_;
  result.drafted = drafted_;
  result.drafting = drafting_;
  result.draft_reading = draft_reading_;
  result.learning = learning_;
  result.constraining = constraining_;
  result.constrained_tokens = constrained_tokens_;
  for (std::size_t i = 0; i < samples_.size(); i += kSampleColumns) {
    const std::int64_t flags = samples_[i + 2];
    Sample& sample = result.samples.emplace_back();
    sample.request = RequestId{static_cast<std::uint64_t>(samples_[i])};
    sample.token = static_cast<Token>(samples_[i + 1]);
    sample.forced = (flags & kForced) != 0;
    sample.computed = (flags & kComputed) != 0;
    sample.end_of_generation = (flags & kEndOfGeneration) != 0;
    sample.time_is_up = (flags & kTimeIsUp) != 0;
    sample.outdented = (flags & kOutdented) != 0;
    sample.stopped = (flags & kStopped) != 0;
  }
  for (const std::int64_t id : put_off_) result.put_off.push_back(RequestId{static_cast<std::uint64_t>(id)});
  for (std::size_t i = 0; i < prompts_.size(); i += kPromptColumns) {
    PromptChances& prompt = result.prompts.emplace_back();
    prompt.from = static_cast<TokenCount>(prompts_[i]);
    prompt.chances.resize(static_cast<std::size_t>(prompts_[i + 1]));
  }
  for (std::size_t i = 0; i < snapshots_.size(); i += kSnapshotColumns) {
    const auto bytes = static_cast<std::size_t>(snapshots_[i]);
    const auto tokens = static_cast<TokenCount>(snapshots_[i + 1]);
    const auto block = static_cast<TokenCount>(snapshots_[i + 2]);
    result.snapshots.push_back(snapshots_[i] < 0 ? nullptr : KvSnapshot::hollow(bytes, tokens, block));
  }
  for (const std::int64_t place : not_restored_) result.not_restored.push_back(static_cast<std::size_t>(place));
}

}  // namespace chasqui
