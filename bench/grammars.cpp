// grammar_cost: what grammars cost with our own engine: making them of schemas and compiling them, and finding the
// tokens that may come next, each schema met for the first time. The schemas are those of grammar_schemas.h, and those
// of JSON files: objects of schemas by name, as bench/schemas/tools.json, or with such an object as "kept", as
// tests/e2e/schemas.json. Vocabularies are read from GGUF files, which need no weights; answers are drawn from what the
// masks allow, ends of strings and lists first, so that they are of a common length. Then what the most expensive masks
// cost (hostile_grammars.h), in pieces as they are found after the steps of a model.
//
//   grammar_cost [SCHEMAS.json …] VOCABULARY.gguf …
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>

#include "api/schema/json_schema.h"
#include "base/limits.h"
#include "grammar_schemas.h"
#include "hostile_grammars.h"
#include "model/automaton_gate.h"
#include "model/grammar/grammar_matcher.h"
#include "model/grammar_shape.h"
#include "model/llama_tokenizer.h"
#include "model/llama_weights.h"

namespace chasqui {
namespace {

using Microseconds = std::chrono::duration<double, std::micro>;

constexpr int kTokensMax = 200;  // of an answer

double microseconds_since(std::chrono::steady_clock::time_point begin) {
  return Microseconds(std::chrono::steady_clock::now() - begin).count();
}

struct Times {
  std::vector<double> all;

  double at(double part) {
    if (all.empty()) return 0;
    const auto place = static_cast<std::ptrdiff_t>(part * static_cast<double>(all.size() - 1));
    std::nth_element(all.begin(), all.begin() + place, all.end());
    return all[static_cast<std::size_t>(place)];
  }
  double mean() const {
    double sum = 0;
    for (const double time : all) sum += time;
    return all.empty() ? 0 : sum / static_cast<double>(all.size());
  }
};

struct Answer {
  Times masks;
  std::uint64_t computed = 0;
  std::size_t bytes = 0;
};

Token choose(const TokenMask& mask, const TokenTrie& tokens, std::mt19937& random) {
  std::vector<Token> allowed = mask.list;
  for (std::size_t word = 0; word < mask.bits.size(); ++word) {
    for (std::uint64_t bits = mask.bits[word]; bits != 0; bits &= bits - 1) {
      allowed.push_back(static_cast<Token>(word * 64 + static_cast<std::size_t>(__builtin_ctzll(bits))));
    }
  }
  if (allowed.empty()) return -1;
  if (random() % 4 == 0) {
    const auto closes = [&](Token token) {
      const std::string_view text = tokens.piece(token);
      return tokens.is_end(token) || text == "\"" || text == "\"," || text == "]" || text == "}" || text == "\"}";
    };
    std::vector<Token> closing;
    std::ranges::copy_if(allowed, std::back_inserter(closing), closes);
    if (!closing.empty()) return closing[random() % closing.size()];
  }
  return allowed[random() % allowed.size()];
}

Answer answer(const GrammarProgramPtr& program, std::mt19937& random) {
  Answer out;
  GrammarMaskPool pool;
  GrammarMatcher matcher(program);
  for (int i = 0; i < kTokensMax; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const TokenMask& mask = matcher.mask(pool.of(program));
    out.masks.all.push_back(microseconds_since(begin));
    const Token token = choose(mask, *program->tokens, random);
    if (token < 0 || program->tokens->is_end(token)) break;
    if (!matcher.accept(token, pool.of(program))) break;
  }
  out.computed = pool.cost().computed;
  out.bytes = pool.of(program).bytes();
  return out;
}

bool add_schemas(const std::string& path, std::vector<std::string>& out) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  boost::system::error_code failed;
  const boost::json::value read = boost::json::parse(text, failed);
  if (failed || !read.is_object()) return std::fprintf(stderr, "%s: no object of schemas\n", path.c_str()), false;
  const boost::json::value* kept = read.as_object().if_contains("kept");
  for (const auto& [name, schema] : (kept != nullptr ? *kept : read).as_object()) {
    out.push_back(boost::json::serialize(schema));
  }
  return true;
}

// Of one answer: pieces of masks, what the longest of them took, and what asking about a token took beside them.
struct Pieces {
  std::size_t masks = 0;
  std::size_t incomplete = 0;  // when no more steps are waited for
  std::size_t most = 0;        // of one mask
  Times pieces;
  Times tokens;
  std::uint64_t most_work = 0;  // in one piece
  double seconds = 0;
  std::uint64_t work = 0;
};

Pieces answer_in_pieces(const GrammarProgramPtr& program, std::uint64_t work_of_piece, std::mt19937& random) {
  constexpr int kHostileTokens = 24;
  Pieces out;
  GrammarMaskPool pool;
  GrammarMatcher matcher(program);
  for (int i = 0; i < kHostileTokens; ++i) {
    Token token = static_cast<Token>(random() % static_cast<std::uint32_t>(program->tokens->vocabulary()));
    auto begin = std::chrono::steady_clock::now();
    matcher.allows(token, pool.of(program));
    out.tokens.all.push_back(microseconds_since(begin));
    const TokenMask* mask = nullptr;
    std::size_t pieces = 0;
    do {
      std::uint64_t work = work_of_piece;
      const std::uint64_t before = pool.work();
      begin = std::chrono::steady_clock::now();
      mask = &matcher.mask(pool.of(program), work);
      out.pieces.all.push_back(microseconds_since(begin));
      out.seconds += out.pieces.all.back() / 1e6;
      out.work += pool.work() - before;
      out.most_work = std::max(out.most_work, pool.work() - before);
    } while (!mask->whole && ++pieces < kSizeLimit<"grammar_mask_steps">);
    ++out.masks;
    out.most = std::max(out.most, pieces + 1);
    out.incomplete += mask->whole ? 0 : 1;
    token = choose(*mask, *program->tokens, random);
    if (token < 0 || program->tokens->is_end(token)) break;
    begin = std::chrono::steady_clock::now();
    if (!matcher.accept(token, pool.of(program))) break;
    out.tokens.all.push_back(microseconds_since(begin));
  }
  return out;
}

void measure_hostile(const LlamaTokenizer& tokenizer, const std::shared_ptr<const TokenTrie>& tokens) {
  std::printf("  %-44s%8s%8s%8s%8s%12s%12s%12s%10s\n", "hostile, in the pieces of a step", "masks", "pieces", "most",
              "not all", "piece p50", "most, us", "token, us", "ns/step");
  for (const bench::HostileGrammar& hostile : bench::hostile_grammars()) {
    Grammar grammar;
    grammar.text = hostile.text;
    if (hostile.is_schema) {
      auto written = write_schema_grammar(boost::json::parse(hostile.text), "schema", false);
      if (!written) {
        std::printf("  %-44s%s\n", hostile.name.c_str(), written.error().message.c_str());
        continue;
      }
      grammar.text = std::move(written->text);
    }
    const auto shape = check_grammar_shape(grammar.text);
    auto program = shape ? compile_program(grammar, tokenizer, tokens) : Result<GrammarProgramPtr>(shape.error());
    if (!program) {
      std::printf("  %-44s%s\n", hostile.name.c_str(), program.error().message.c_str());
      continue;
    }
    std::mt19937 random(1);
    Pieces one = answer_in_pieces(*program, GrammarMasks::kStepWork, random);
    std::printf("  %-44s%8zu%8zu%8zu%8zu%12.0f%12.0f%12.0f%10.1f\n", hostile.name.c_str(), one.masks,
                one.pieces.all.size(), one.most, one.incomplete, one.pieces.at(0.5), one.pieces.at(1), one.tokens.at(1),
                1e9 * one.seconds / static_cast<double>(std::max<std::uint64_t>(one.work, 1)));
  }
}

int measure(const std::string& path, const std::vector<std::string>& schemas) {
  WeightsOptions words_only;
  words_only.vocabulary_only = true;
  const auto weights = LlamaWeights::from_file(path, words_only);
  if (!weights) return std::fprintf(stderr, "%s: %s\n", path.c_str(), weights.error().message.c_str()), 1;
  const LlamaTokenizer tokenizer(*weights);
  const auto begin = std::chrono::steady_clock::now();
  const auto tokens = make_token_trie(tokenizer);
  std::printf("%s: %d tokens; tree in %.0f ms, %.1f MiB (%zu nodes plain, %zu others)\n", path.c_str(),
              tokenizer.vocabulary(), microseconds_since(begin) / 1000,
              static_cast<double>(tokens->bytes()) / (1 << 20), tokens->plain().nodes.size(),
              tokens->others().nodes.size());
  std::mt19937 random(1);
  Times masks;
  Times compiles;
  std::uint64_t computed = 0;
  std::size_t bytes = 0;
  std::size_t count = 0;
  std::size_t dropping = 0;  // schemas of which a keyword is not kept
  for (const std::string& schema : schemas) {
    const boost::json::value value = boost::json::parse(schema);
    const auto compiling = std::chrono::steady_clock::now();
    auto written = write_schema_grammar(value, "schema", false);
    if (!written) {
      std::printf("not written: %s: %s\n", schema.substr(0, 100).c_str(), written.error().message.c_str());
      continue;
    }
    dropping += written->dropped.empty() ? 0 : 1;
    Grammar grammar;
    grammar.text = std::move(written->text);
    const auto program = compile_program(grammar, tokenizer, tokens);
    compiles.all.push_back(microseconds_since(compiling));
    if (!program) return std::fprintf(stderr, "%s: %s\n", schema.c_str(), program.error().message.c_str()), 1;
    Answer one = answer(*program, random);
    ++count;
    computed += one.computed;
    bytes = std::max(bytes, one.bytes);
    masks.all.insert(masks.all.end(), one.masks.all.begin(), one.masks.all.end());
  }
  std::printf("  %zu schemas (%zu in part), %zu masks, %llu of them computed, at most %.1f MiB for a schema\n", count,
              dropping, masks.all.size(), static_cast<unsigned long long>(computed),
              static_cast<double>(bytes) / (1 << 20));
  std::printf("  mask     mean %7.1f us, p50 %7.1f, p99 %7.1f, most %7.1f\n", masks.mean(), masks.at(0.5),
              masks.at(0.99), masks.at(1));
  std::printf("  compile  mean %7.1f us, p50 %7.1f, p99 %7.1f, most %7.1f\n", compiles.mean(), compiles.at(0.5),
              compiles.at(0.99), compiles.at(1));
  measure_hostile(tokenizer, tokens);
  return 0;
}

}  // namespace
}  // namespace chasqui

int main(int count, char** arguments) {
  std::vector<std::string> schemas = chasqui::bench::schemas();
  int failed = 0;
  for (int i = 1; i < count; ++i) {
    const std::string path = arguments[i];
    const bool names_schemas = std::string_view(path).ends_with(".json");
    failed += names_schemas ? (chasqui::add_schemas(path, schemas) ? 0 : 1) : chasqui::measure(path, schemas);
  }
  return failed == 0 ? 0 : 1;
}
