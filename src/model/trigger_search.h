// Looks in an answer, token by token, for where a lazy grammar begins to hold: at the first match of one of its
// patterns. What a token costs does not depend on how long the answer is: each byte is read once, and of the text only
// what a match may still begin with is kept. Part of a lazy grammar's sampler; one thread at a time, copies are
// independent.
//
// bounded: what is kept of the text, kSpan and one token; a match that is longer is none.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.h"
#include "model/trigger_pattern.h"

namespace chasqui {

using TriggerPatterns = std::vector<TriggerPattern>;

class TriggerSearch {
 public:
  static constexpr std::size_t kSpan = 4096;

  struct Piece {
    Token token;
    std::string text;
    bool operator==(const Piece&) const = default;
  };

  explicit TriggerSearch(std::shared_ptr<const TriggerPatterns> patterns);

  // The tokens from where the grammar begins to hold, the first of them perhaps in part; empty while there is no match.
  // REQUIRES: nothing but empty was returned before
  std::vector<Piece> push(Token token, std::string_view text);

  // Steps so far: states that a byte was held against, and bytes that a regular expression was given.
  std::size_t work() const { return work_; }
  std::size_t kept() const { return text_.size(); }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  // Of one pattern. Where several matches are in the same state, the one that began first stands for all of them.
  struct Scan {
    std::vector<TriggerPattern::State> states;
    std::vector<std::size_t> begins;  // by state; kNone where it is not among `states`
  };

  std::size_t scan(std::size_t pattern, std::string_view text);
  std::size_t enter(const TriggerPattern& pattern, Scan& scan, TriggerPattern::State state, std::size_t begin,
                    std::size_t at, bool text_ends);
  std::size_t find(std::size_t pattern, std::size_t begin);
  std::vector<Piece> pieces_from(std::size_t begin) const;
  void forget();

  std::shared_ptr<const TriggerPatterns> patterns_;
  std::vector<Scan> scans_;
  Scan next_;
  std::string text_;      // from base_ on
  std::size_t base_ = 0;  // where in the answer text_ begins
  struct Place {
    Token token;
    std::size_t begin;
    std::size_t end;
  };
  std::vector<Place> places_;  // of the tokens of text_
  std::size_t work_ = 0;
};

}  // namespace chasqui
