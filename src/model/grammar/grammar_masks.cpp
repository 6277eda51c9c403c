#include "model/grammar/grammar_masks.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/limits.h"
#include "base/thread_time.h"

namespace chasqui {
namespace {

constexpr std::uint64_t kForcedWorkMax = GrammarMasks::kLeastWork;
constexpr std::size_t kMapEntryBytes = 32;

struct ByteSpan {
  std::uint8_t low = 0;
  std::uint8_t high = 0;
};
constexpr ByteSpan kContinued{0x80, 0xBF};

// Characters of several bytes, as UTF-8 writes them.
const std::vector<std::vector<ByteSpan>> kSequences = {
    {{0xC2, 0xDF}, kContinued},
    {{0xE0, 0xE0}, {0xA0, 0xBF}, kContinued},
    {{0xE1, 0xEC}, kContinued, kContinued},
    {{0xED, 0xED}, {0x80, 0x9F}, kContinued},
    {{0xEE, 0xEF}, kContinued, kContinued},
    {{0xF0, 0xF0}, {0x90, 0xBF}, kContinued, kContinued},
    {{0xF1, 0xF3}, kContinued, kContinued, kContinued},
    {{0xF4, 0xF4}, {0x80, 0x8F}, kContinued, kContinued},
};

}  // namespace

bool TokenMask::has(Token token) const {
  if (!bits.empty()) return has_token(bits, token);
  return whole ? std::ranges::binary_search(list, token) : std::ranges::find(list, token) != list.end();
}

GrammarMasks::GrammarMasks(GrammarProgramPtr program) : program_(std::move(program)), states_(program_->automaton) {
  for (int byte = 0x20; byte < 0x7F; ++byte) {
    if (byte != '"' && byte != '\\') {
      plain_classes_.push_back(program_->automaton->byte_class(static_cast<std::uint8_t>(byte)));
    }
  }
  std::ranges::sort(plain_classes_);
  plain_classes_.erase(std::unique(plain_classes_.begin(), plain_classes_.end()), plain_classes_.end());
}

void GrammarMasks::forget() {
  states_.forget();
  entries_.clear();
  forced_texts_.clear();
  forced_tokens_.clear();
  plain_steps_.clear();
  bytes_ = 0;
}

GrammarMasks::Id GrammarMasks::after(Id state, Token token) {
  const TokenTrie& tokens = *program_->tokens;
  if (tokens.is_end(token)) return states_.is_complete(state) ? state : GrammarStates::kDead;
  if (!tokens.is_text(token)) return GrammarStates::kDead;
  const Id bytes = states_.after_bytes(state, tokens.piece(token));
  return program_->automaton->names_tokens() ? states_.join(bytes, states_.after_token(state, token)) : bytes;
}

bool GrammarMasks::allows(Id state, Token token) {
  if (const auto known = entries_.find(state); known != entries_.end() && known->second.mask.whole) {
    return known->second.mask.has(token);
  }
  // The end of a generation leaves a state without a way on where it is.
  if (program_->tokens->is_end(token)) return states_.is_complete(state);
  return after(state, token) != GrammarStates::kDead;
}

const std::string& GrammarMasks::forced_text(Id state) {
  const auto [found, fresh] = forced_texts_.try_emplace(state);
  std::string& text = found->second;
  if (!fresh) return text;
  const std::uint64_t most = work() + kForcedWorkMax;
  for (Id at = state; text.size() < kForcedBytes && work() < most;) {
    const auto byte = states_.only_byte(at);
    if (!byte) break;
    text += static_cast<char>(*byte);
    at = states_.next(at, *byte);
  }
  bytes_ += sizeof(std::string) + text.capacity() + kMapEntryBytes;
  return text;
}

const std::vector<Token>* GrammarMasks::forced_tokens(Id state, Token last) const {
  const auto known = forced_tokens_.find(key_of(state, last));
  return known != forced_tokens_.end() ? &known->second : nullptr;
}

const std::vector<Token>& GrammarMasks::keep_forced_tokens(Id state, Token last, std::vector<Token> tokens) {
  bytes_ += sizeof(std::vector<Token>) + tokens.capacity() * sizeof(Token) + kMapEntryBytes;
  return forced_tokens_[key_of(state, last)] = std::move(tokens);
}

const TokenMask& GrammarMasks::mask(Id state) {
  for (;;) {
    std::uint64_t work = kStepWork;
    const TokenMask& found = mask(state, work);
    if (found.whole || !found.empty()) return found;
  }
}

const TokenMask& GrammarMasks::mask(Id state, std::uint64_t& work) {
  Entry& entry = entries_[state];
  if (entry.mask.whole) {
    ++cost_.found;
    return entry.mask;
  }
  const auto begun = thread_time();
  const std::size_t before = bytes_of(entry);
  const std::uint64_t work_begin = this->work();
  work_end_ = work_begin + work;
  go_on(state, entry);
  work -= std::min(work, this->work() - work_begin);
  bytes_ += bytes_of(entry) - before;
  ++(entry.mask.whole ? cost_.computed : cost_.put_off);
  cost_.computing += thread_time() - begun;
  return entry.mask;
}

// Of what it holds besides what every entry has, which is counted once it has anything.
std::size_t GrammarMasks::bytes_of(const Entry& entry) {
  if (entry.stage == Stage::begin) return 0;
  return sizeof(Entry) + entry.mask.bits.capacity() * sizeof(std::uint64_t) +
         (entry.mask.list.capacity() + entry.path.capacity()) * sizeof(Token);
}

void GrammarMasks::go_on(Id state, Entry& entry) {
  if (entry.stage == Stage::begin) begin(state, entry);
  if (entry.stage == Stage::plain) {
    if (!walk(entry, program_->tokens->plain(), true)) return;
    begin_tree(state, entry, Stage::others, program_->tokens->others());
  }
  if (entry.stage == Stage::others) {
    if (!walk(entry, program_->tokens->others(), false)) return;
    entry.stage = Stage::done;
    entry.path = std::vector<Id>();
    std::ranges::sort(entry.mask.list);
    entry.mask.list.erase(std::unique(entry.mask.list.begin(), entry.mask.list.end()), entry.mask.list.end());
  }
  entry.mask.whole = true;
}

void GrammarMasks::begin(Id state, Entry& entry) {
  const TokenTrie& tokens = *program_->tokens;
  bool closed = false;
  const std::size_t room = plain_room(state, closed);
  if (room > 0) entry.mask.bits = tokens.plain_up_to(room);
  if (states_.is_complete(state)) {
    for (const Token token : tokens.end_of_generation()) add(entry.mask, token);
  }
  if (program_->automaton->names_tokens()) add_tokens_by_number(state, entry.mask);
  const bool settled = closed || room == TokenTrie::kPlainMost;  // about all plain tokens
  begin_tree(state, entry, settled ? Stage::others : Stage::plain, settled ? tokens.others() : tokens.plain());
}

void GrammarMasks::add_tokens_by_number(Id state, TokenMask& mask) {
  const TokenTrie& tokens = *program_->tokens;
  const auto add_text = [&](Token token) {
    if (token >= 0 && token < tokens.vocabulary() && tokens.is_text(token)) add(mask, token);
  };
  std::optional<Token> left_out;  // by all that take any token but one
  bool any = false;
  for (const GrammarPlace& place : states_.configuration(state)->places) {
    for (const GrammarAutomaton::TokenStep& step : program_->automaton->token_steps(place.position)) {
      if (!step.inverse) {
        add_text(step.token);
      } else if (!left_out) {
        left_out = step.token;
      } else {
        any = any || *left_out != step.token;
      }
    }
  }
  for (Token token = 0; left_out && token < tokens.vocabulary(); ++token) {
    if (any || token != *left_out) add_text(token);
  }
}

void GrammarMasks::begin_tree(Id state, Entry& entry, Stage stage, const TokenTrie::Tree& tree) {
  entry.stage = stage;
  entry.at = 0;
  entry.path.assign(tree.depth + 1u, GrammarStates::kDead);
  entry.path[0] = state;
}

// False: the work of the call is used up before the end.
bool GrammarMasks::walk(Entry& entry, const TokenTrie::Tree& tree, bool plain) {
  const std::vector<TokenTrie::Node>& nodes = tree.nodes;
  const auto end = static_cast<std::uint32_t>(nodes.size() - 1);
  const GrammarAutomaton& automaton = *program_->automaton;
  std::uint32_t at = entry.at;
  for (const std::uint64_t first = work_; at < end; ++work_) {
    if (work_ > first && is_used_up()) break;
    const TokenTrie::Node& node = nodes[at];
    const Id to = states_.row(entry.path[node.depth - 1u])[automaton.byte_class(node.byte)];
    if (to == GrammarStates::kDead) {
      at = node.skip;
      continue;
    }
    entry.path[node.depth] = to;
    std::uint32_t last = nodes[at + 1].first;
    bool closed = false;
    if (plain && node.skip > at + 1 && plain_step(to).kind == Plain::steps &&
        plain_room(to, closed) == TokenTrie::kPlainMost) {
      at = node.skip;
      last = nodes[at].first;
    } else {
      ++at;
    }
    for (std::uint32_t i = node.first; i < last; ++i) add(entry.mask, tree.tokens[i]);
  }
  entry.at = at;
  return at >= end;
}

void GrammarMasks::add(TokenMask& mask, Token token) {
  if (!mask.bits.empty()) return add_token(mask.bits, token);
  mask.list.push_back(token);
  if (mask.list.size() > TokenMask::kListed) make_bits(mask);
}

void GrammarMasks::make_bits(TokenMask& mask) {
  mask.bits.assign(words(), 0);
  for (const Token token : mask.list) add_token(mask.bits, token);
  mask.list = std::vector<Token>();
}

std::size_t GrammarMasks::plain_room(Id state, bool& closed) {
  for (std::size_t room = 0; room < TokenTrie::kPlainMost; ++room) {
    const PlainStep step = plain_step(state);
    closed = step.kind == Plain::dead;
    if (step.kind != Plain::steps) return room;
    if (step.to == state) break;
    state = step.to;
  }
  return TokenTrie::kPlainMost;
}

// Mixed is what it is as well where there was no time to look: then each character is walked by itself.
GrammarMasks::PlainStep GrammarMasks::plain_step(Id state) {
  if (plain_steps_.size() <= state) plain_steps_.resize(std::max<std::size_t>(2 * plain_steps_.size(), state + 64u));
  if (plain_steps_[state].kind != Plain::unknown) return plain_steps_[state];
  const PlainStep step = find_plain_step(state);
  if (!is_used_up()) plain_steps_[state] = step;
  return step;
}

GrammarMasks::PlainStep GrammarMasks::find_plain_step(Id state) {
  const Id target = states_.row(state)[plain_classes_.front()];
  for (const std::uint8_t byte_class : plain_classes_) {
    if (states_.row(state)[byte_class] != target) return {Plain::mixed, 0};
  }
  for (std::size_t i = 0; i < kSequences.size(); ++i) {
    if (!leads_to(state, i, 0, target)) return {Plain::mixed, 0};
  }
  return target == GrammarStates::kDead ? PlainStep{Plain::dead, 0} : PlainStep{Plain::steps, target};
}

// Whether all characters of a sequence, from `byte` on, lead from `state` to `target`.
bool GrammarMasks::leads_to(Id state, std::size_t sequence, std::size_t byte, Id target) {
  const std::vector<ByteSpan>& spans = kSequences[sequence];
  if (is_used_up()) return false;
  if (byte == spans.size()) return state == target;
  if (state == GrammarStates::kDead) return target == GrammarStates::kDead;
  Id last = std::numeric_limits<Id>::max();
  const GrammarAutomaton& automaton = *program_->automaton;
  const std::uint8_t high = automaton.byte_class(spans[byte].high);
  for (std::uint32_t i = automaton.byte_class(spans[byte].low); i <= high; ++i) {
    const Id next = states_.row(state)[i];
    if (next == last) continue;
    if (!leads_to(next, sequence, byte + 1, target)) return false;
    last = next;
  }
  return true;
}

}  // namespace chasqui
