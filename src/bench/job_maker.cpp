#include "bench/job_maker.h"

#include <array>
#include <string_view>

namespace chasqui::bench {
namespace {

// Short and frequent, so that most vocabularies have one token for each; 128 of them, so that the first five words
// of a prompt are one of 34 billion.
constexpr std::array<std::string_view, 128> kWords = {
    "the",   "and",   "water", "house", "small", "light", "green", "river", "stone", "night", "day",   "time",  "year",
    "way",   "hand",  "part",  "place", "case",  "week",  "work",  "point", "world", "life",  "child", "eye",   "woman",
    "man",   "group", "fact",  "home",  "room",  "area",  "money", "story", "month", "lot",   "right", "study", "book",
    "word",  "issue", "side",  "kind",  "head",  "far",   "black", "long",  "hour",  "game",  "line",  "end",   "city",
    "name",  "team",  "idea",  "body",  "back",  "face",  "door",  "art",   "war",   "party", "air",   "force", "road",
    "ship",  "table", "glass", "wood",  "fire",  "snow",  "rain",  "wind",  "sun",   "moon",  "star",  "tree",  "leaf",
    "bird",  "fish",  "horse", "dog",   "cat",   "bread", "salt",  "milk",  "king",  "queen", "old",   "new",   "good",
    "great", "high",  "low",   "big",   "large", "next",  "early", "young", "few",   "same",  "able",  "blue",  "red",
    "white", "cold",  "warm",  "dark",  "deep",  "full",  "hard",  "soft",  "wide",  "open",  "free",  "true",  "clear",
    "quick", "slow",  "quiet", "run",   "walk",  "read",  "write", "sing",  "build", "find",  "give"};

}  // namespace

JobMaker::JobMaker(const LoadSpec& spec, std::uint64_t seed)
    : spec_(spec),
      words_(seed, spec.name + ".words"),
      lengths_(seed, spec.name + ".lengths"),
      leavers_(seed, spec.name + ".leavers") {
  RandomSource shared(seed, spec.name + ".shared");
  append_words(shared_prefix_, spec.shared_prefix_words, shared);
  for (const Share& share : spec.max_tokens) {
    deck_.insert(deck_.end(), static_cast<std::size_t>(share.weight), share.tokens);
  }
  dealt_ = deck_.size();
}

Job JobMaker::next() {
  Job job;
  job.prompt = shared_prefix_;
  const std::int64_t words = lengths_.between(spec_.prompt_words.low, spec_.prompt_words.high);
  append_words(job.prompt, words - spec_.shared_prefix_words, words_);
  job.max_tokens = deal_max_tokens();
  job.priority = spec_.priority;
  job.key = spec_.key;
  job.stream = spec_.stream;
  decide_abandon(job);
  return job;
}

Job JobMaker::from_trace(const TraceEntry& entry) {
  Job job;
  job.prompt = entry.prompt;
  if (job.prompt.empty()) append_words(job.prompt, entry.prompt_words, words_);
  job.max_tokens = entry.max_tokens;
  job.priority = entry.priority;
  job.key = entry.key;
  decide_abandon(job);
  return job;
}

void JobMaker::append_words(std::string& text, std::int64_t count, RandomSource& random) const {
  text.reserve(text.size() + static_cast<std::size_t>(count) * 6);
  for (std::int64_t i = 0; i < count; ++i) {
    if (!text.empty()) text += ' ';
    text += kWords[static_cast<std::size_t>(random.between(0, kWords.size() - 1))];
  }
}

std::int32_t JobMaker::deal_max_tokens() {
  if (dealt_ == deck_.size()) {
    for (std::size_t i = deck_.size() - 1; i > 0; --i) {
      std::swap(deck_[i], deck_[static_cast<std::size_t>(lengths_.between(0, static_cast<std::int64_t>(i)))]);
    }
    dealt_ = 0;
  }
  const Span tokens = deck_[dealt_++];
  return static_cast<std::int32_t>(lengths_.between(tokens.low, tokens.high));
}

void JobMaker::decide_abandon(Job& job) {
  const bool leaves = leavers_.fraction() < spec_.abandon;
  const auto after = static_cast<std::int32_t>(leavers_.between(0, job.max_tokens - 1));
  if (leaves) job.abandon_after = after;
}

}  // namespace chasqui::bench
