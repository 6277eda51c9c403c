#include "model/automaton_gate.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/limits.h"
#include "model/forced_tokens.h"
#include "model/grammar/grammar_matcher.h"
#include "model/trigger_search.h"

namespace chasqui {
namespace {

GrammarMaskPool& thread_masks() {
  thread_local GrammarMaskPool pool;
  return pool;
}

// Until the trigger has come any token may.
struct AwaitedTrigger {
  GrammarTriggers triggers;
  TriggerSearch search;
};

class AutomatonGate final : public TokenGate {
 public:
  AutomatonGate(GrammarMatcher matcher, std::optional<AwaitedTrigger> awaited, std::shared_ptr<const Tokenizer> forces)
      : matcher_(std::move(matcher)), awaited_(std::move(awaited)), forces_(std::move(forces)) {}

  bool allows(Token token) override { return awaited_ || matcher_.allows(token, masks()); }

  bool accept(Token token) override {
    if (!awaited_) return matcher_.accept(token, masks());
    const TokenTrie& tokens = *matcher_.program()->tokens;
    if (std::ranges::find(awaited_->triggers.tokens, token) != awaited_->triggers.tokens.end()) {
      awaited_.reset();
      return matcher_.accept(token, masks());
    }
    const auto said = awaited_->search.push(token, tokens.piece(token));
    if (said.empty()) return true;
    awaited_.reset();
    return std::ranges::all_of(said, [&](const TriggerSearch::Piece& piece) {
      const bool whole = piece.text == tokens.piece(piece.token);
      return whole ? matcher_.accept(piece.token, masks()) : matcher_.accept_text(piece.text, masks());
    });
  }

  const TokenMask* mask(std::uint64_t& work) override { return awaited_ ? nullptr : &matcher_.mask(masks(), work); }

  std::span<const Token> forced(Token last) override {
    if (awaited_ || forces_ == nullptr) return {};
    GrammarMasks& masks = this->masks();
    return forced_tokens(masks, matcher_.state(masks), last, *forces_);
  }

  std::unique_ptr<TokenGate> copy() const override { return std::make_unique<AutomatonGate>(*this); }

 private:
  GrammarMasks& masks() { return thread_masks().of(matcher_.program()); }

  GrammarMatcher matcher_;
  std::optional<AwaitedTrigger> awaited_;
  std::shared_ptr<const Tokenizer> forces_;
};

}  // namespace

GrammarMaskCost grammar_mask_cost() { return thread_masks().cost(); }

std::shared_ptr<const TokenTrie> make_token_trie(const Tokenizer& tokenizer) {
  std::vector<std::string_view> pieces;
  for (Token token = 0; token < tokenizer.vocabulary(); ++token) pieces.push_back(tokenizer.special_piece(token));
  return std::make_shared<const TokenTrie>(pieces, tokenizer.end_of_generation_tokens());
}

Result<GrammarProgramPtr> compile_program(const Grammar& grammar, const Tokenizer& tokenizer,
                                          std::shared_ptr<const TokenTrie> tokens) {
  const auto token_by_name = [&](std::string_view name) -> std::optional<Token> {
    const std::vector<Token> found = tokenizer.tokenize(name, AddSpecial::no, ParseSpecial::yes);
    return found.size() == 1 ? std::optional(found.front()) : std::nullopt;
  };
  const auto read = parse_gbnf(grammar.text, token_by_name);
  if (!read) return read.error();
  auto automaton = GrammarAutomaton::compile(*read);
  if (!automaton) return automaton.error();
  const auto shared = std::make_shared<const GrammarAutomaton>(std::move(*automaton));
  GrammarStates states(shared);
  if (states.start() == GrammarStates::kDead) {
    return invalid_field("grammar", "grammar is nested too deeply: a text may be inside of at most " +
                                        std::to_string(kSizeLimit<"grammar_depth">) + " rules at once");
  }
  GrammarProgram program{shared, std::move(tokens)};
  return std::make_shared<const GrammarProgram>(std::move(program));
}

Result<std::unique_ptr<TokenGate>> make_automaton_gate(const Grammar& grammar, GrammarProgramPtr program,
                                                       std::shared_ptr<const Tokenizer> forces) {
  GrammarMatcher matcher(program);
  if (!grammar.begun.empty()) {
    GrammarMasks masks(program);  // the thread that compiles is not the one that samples
    for (const Token token : grammar.begun) {
      if (!matcher.accept(token, masks)) {
        return invalid_field("grammar", "grammar cannot be used: it does not fit what the prompt ends with");
      }
    }
  }
  std::optional<AwaitedTrigger> awaited;
  if (grammar.lazy) {
    try {
      auto patterns =
          std::make_shared<TriggerPatterns>(grammar.trigger_patterns.begin(), grammar.trigger_patterns.end());
      TriggerSearch search(patterns);
      awaited.emplace(AwaitedTrigger{{std::move(patterns), grammar.trigger_tokens}, std::move(search)});
    } catch (const std::exception& failed) {
      return invalid_field("grammar", std::string("grammar cannot be used: ") + failed.what());
    }
  }
  return std::unique_ptr<TokenGate>(
      std::make_unique<AutomatonGate>(std::move(matcher), std::move(awaited), std::move(forces)));
}

}  // namespace chasqui
