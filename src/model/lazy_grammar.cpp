#include "model/lazy_grammar.h"

#include <algorithm>
#include <string>
#include <utility>

#include <llama.h>

namespace chasqui {

// third_party/counted: accepts `text`, which may be the end of what `token` says.
void accept_grammar_text(llama_sampler* grammar, Token token, const std::string& text);

namespace {

struct LazyGrammar {
  LlamaSamplerPtr grammar;
  GrammarTriggers triggers;
  const llama_vocab* vocab;
  TriggerSearch search;
  bool waiting = true;
};

llama_sampler* new_lazy_grammar(LazyGrammar made);

LazyGrammar& lazy_grammar_of(const llama_sampler* sampler) { return *static_cast<LazyGrammar*>(sampler->ctx); }

std::string text_of_token(const llama_vocab* vocab, Token token) {
  std::string out(64, '\0');
  int length = llama_token_to_piece(vocab, token, out.data(), static_cast<int>(out.size()), 0, true);
  if (length < 0) {
    out.resize(static_cast<std::size_t>(-length));
    length = llama_token_to_piece(vocab, token, out.data(), -length, 0, true);
  }
  out.resize(static_cast<std::size_t>(std::max(length, 0)));
  return out;
}

void accept_lazily(llama_sampler* sampler, llama_token token) {
  LazyGrammar& lazy = lazy_grammar_of(sampler);
  if (lazy.waiting && std::ranges::find(lazy.triggers.tokens, token) != lazy.triggers.tokens.end())
    lazy.waiting = false;
  if (!lazy.waiting) return llama_sampler_accept(lazy.grammar.get(), token);
  const auto said = lazy.search.push(token, text_of_token(lazy.vocab, token));
  lazy.waiting = said.empty();
  for (const TriggerSearch::Piece& piece : said) accept_grammar_text(lazy.grammar.get(), piece.token, piece.text);
}

void apply_lazily(llama_sampler* sampler, llama_token_data_array* row) {
  const LazyGrammar& lazy = lazy_grammar_of(sampler);
  if (!lazy.waiting) llama_sampler_apply(lazy.grammar.get(), row);
}

llama_sampler* copy_lazy_grammar(const llama_sampler* sampler) {
  const LazyGrammar& lazy = lazy_grammar_of(sampler);
  return new_lazy_grammar({copy_sampler(*lazy.grammar), lazy.triggers, lazy.vocab, lazy.search, lazy.waiting});
}

const char* name_lazy_grammar(const llama_sampler*) { return "lazy-grammar"; }
void free_lazy_grammar(llama_sampler* sampler) { std::unique_ptr<LazyGrammar>(&lazy_grammar_of(sampler)).reset(); }

llama_sampler_i lazy_grammar_interface() {
  llama_sampler_i out{};
  out.name = &name_lazy_grammar;
  out.accept = &accept_lazily;
  out.apply = &apply_lazily;
  out.clone = &copy_lazy_grammar;
  out.free = &free_lazy_grammar;
  return out;
}

llama_sampler* new_lazy_grammar(LazyGrammar made) {
  static llama_sampler_i kInterface = lazy_grammar_interface();
  return llama_sampler_init(&kInterface, std::make_unique<LazyGrammar>(std::move(made)).release());
}

}  // namespace

LlamaSamplerPtr make_lazy_grammar(LlamaSamplerPtr grammar, GrammarTriggers triggers, const llama_vocab* vocab) {
  TriggerSearch search(triggers.patterns);
  return LlamaSamplerPtr(new_lazy_grammar({std::move(grammar), std::move(triggers), vocab, std::move(search), true}));
}

}  // namespace chasqui
