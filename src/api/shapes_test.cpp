// Schemas and grammars by chance, up to the limits of their bytes, through everything that reads them: each is refused,
// or made into a grammar that answers can be held against, within its budget of computing time. A few dozen by default;
// as many as CHASQUI_SHAPES says, from the seed in CHASQUI_SEED (`make shapes`).
#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "api/body/constraint.h"
#include "api/body/tool_limits.h"
#include "base/limits.h"
#include "base/thread_time.h"
#include "model/llama_chat_template.h"
#include "model/llama_sampling_kit.h"
#include "model/llama_tokenizer.h"
#include "model/test_weights.h"
#include "model/work_budget.h"

namespace chasqui {
namespace {

namespace json = boost::json;

class ShapeMaker {
 public:
  ShapeMaker(std::uint32_t seed, std::size_t bytes) : dice_(seed), left_(bytes) {}

  json::object schema(int depth) {
    json::object out;
    spend(20);
    if (below(12) == 0) out["description"] = text(40);
    switch (depth > 40 || left_ < 200 ? below(6) : below(13)) {
      case 0: return with_string(std::move(out));
      case 1: return with_integer(std::move(out));
      case 2: out["type"] = pick({"boolean", "null", "number"}); return out;
      case 3: out["enum"] = values(1 + below(below(30) == 0 ? 1000 : 8)); return out;
      case 4: out["const"] = text(20); return out;
      case 5: out["$ref"] = "#/$defs/d" + std::to_string(below(4)); return out;
      case 6: out[pick({"anyOf", "oneOf", "allOf"})] = several(depth); return out;
      case 7: out["type"] = json::array{"string", "null", "integer"}; return out;
      case 8:
      case 9: return with_array(std::move(out), depth);
      default: return with_object(std::move(out), depth);
    }
  }

  json::object whole_schema() {
    json::object out = with_object({}, 0);
    json::object definitions;
    for (int i = 0; i < 4; ++i) definitions["d" + std::to_string(i)] = schema(30);
    out["$defs"] = std::move(definitions);
    return out;
  }

  std::string grammar() {
    rules_ = 1 + below(below(4) == 0 ? 400 : 12);
    std::string out = "root ::= " + choice(0) + "\n";
    for (; rule_ < rules_; ++rule_) out += "r" + std::to_string(rule_) + " ::= " + choice(0) + "\n";
    return out;
  }

 private:
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(dice_); }
  const char* pick(std::initializer_list<const char*> of) { return of.begin()[below(of.size())]; }
  void spend(std::size_t bytes) { left_ -= std::min(left_, bytes); }

  std::string text(std::size_t most) {
    static constexpr std::string_view kParts[] = {"a", "name", "_", "é", "\"", "\\", " ", "0", "城", "-"};
    std::string out;
    const std::size_t wanted = below(below(50) == 0 ? 300 : most);
    while (out.size() < wanted) out += kParts[below(std::size(kParts))];
    spend(out.size());
    return out;
  }

  json::array values(std::size_t count) {
    json::array out;
    for (std::size_t i = 0; i < count && left_ > 0; ++i)
      out.push_back(below(2) == 0 ? json::value(i) : json::value(text(12)));
    return out;
  }

  json::array several(int depth) {
    json::array out;
    for (std::size_t i = 1 + below(5); i > 0; --i) out.push_back(schema(depth + 1));
    return out;
  }

  std::string pattern(int depth) {
    std::string out;
    for (std::size_t i = 1 + below(4); i > 0; --i) {
      switch (depth > 25 ? below(3) : below(5)) {
        case 0: out += pick({"a", "b", "\\d", ".", "\\.", "é"}); break;
        case 1: out += pick({"[a-z]", "[^x]", "[0-9a-f]", "\\w", "[é-ü]"}); break;
        case 2: out += "x|y"; break;
        default: out += '(' + pattern(depth + 1 + static_cast<int>(below(6))) + ')'; break;
      }
      out += pick({"", "", "*", "+", "?", "{2,5}", "{0,400}", "{1,2000}"});
    }
    return out;
  }

  json::object with_string(json::object out) {
    out["type"] = "string";
    switch (below(5)) {
      case 0: out["pattern"] = '^' + pattern(0) + '$'; break;
      case 1: out["minLength"] = below(100), out["maxLength"] = below(2100); break;
      case 2: out["format"] = pick({"date", "uuid", "email", "date-time", "ipv4", "other"}); break;
      default: break;
    }
    return out;
  }

  json::object with_integer(json::object out) {
    out["type"] = "integer";
    if (below(2) == 0) out["minimum"] = static_cast<std::int64_t>(below(1'000'000'000)) - 5000;
    if (below(2) == 0) out["maximum"] = static_cast<std::int64_t>(below(2'000'000'000'000));
    return out;
  }

  json::object with_array(json::object out, int depth) {
    out["type"] = "array";
    if (below(5) == 0) {
      out["prefixItems"] = several(depth);
    } else {
      out["items"] = schema(depth + 1);
    }
    if (below(3) == 0) out["minItems"] = below(30), out["maxItems"] = below(2100);
    return out;
  }

  json::object with_object(json::object out, int depth) {
    out["type"] = "object";
    json::object properties;
    json::array required;
    const std::size_t count = below(depth == 0 && below(3) == 0 ? 220 : 6);
    for (std::size_t i = 0; i < count && left_ > 0; ++i) {
      const std::string name = text(16);
      properties[name] = schema(depth + 1);
      if (below(3) != 0) required.emplace_back(name);
    }
    out["properties"] = std::move(properties);
    if (below(3) != 0) out["required"] = std::move(required);
    if (below(8) == 0) out["additionalProperties"] = schema(depth + 1);
    return out;
  }

  // Mostly to a later rule: a rule that begins with itself is refused, and so is a grammar that is much too large.
  std::string reference() {
    if (below(200) == 0) return "r" + std::to_string(below(rules_));
    if (rule_ + 1 >= rules_) return "[x-z]";
    return "r" + std::to_string(rule_ + 1 + below(rules_ - rule_ - 1));
  }

  std::string choice(int depth) {
    std::string out = sequence(depth);
    for (std::size_t i = below(below(20) == 0 ? 300 : 4); i > 0 && left_ > 0; --i) out += " | " + sequence(depth);
    return out;
  }

  std::string sequence(int depth) {
    std::string out;
    for (std::size_t i = 1 + below(4); i > 0; --i) {
      spend(8);
      switch (depth > 90 || left_ == 0 ? below(4) : below(7)) {
        case 0: out += "\"" + std::string(1 + below(6), static_cast<char>('a' + below(3))) + "\""; break;
        case 1: out += pick({"[a-z]", "[^\\n]", "[ऀ-ॿ]", "[0-9]", "."}); break;
        case 2: out += reference(); break;
        case 3: out += below(20) == 0 ? "\"\"" : "\"d\""; break;
        default: out += "(" + choice(depth + 1 + static_cast<int>(below(12))) + ")"; break;
      }
      if (below(3) == 0)
        out += pick({"*", "+", "?"});
      else if (below(40) == 0)
        out += pick({"{2,5}", "{0,30}", "{1,2000}"});
      out += ' ';
    }
    return out;
  }

  std::mt19937 dice_;
  std::size_t left_;
  std::size_t rules_ = 1;
  std::size_t rule_ = 0;
};

std::size_t number_of(const char* name, std::size_t otherwise) {
  const char* const said = std::getenv(name);
  return said != nullptr ? std::strtoul(said, nullptr, 10) : otherwise;
}

class Shapes : public ::testing::Test {
 protected:
  // What one of them may compute: a budget for the schema, and one for the grammar. What is read before and after is
  // linear in bytes that are limited.
  static constexpr Duration kMost = 2 * kTimeLimit<"schema_seconds"> + milliseconds(500);
  static constexpr Duration kAnswerMost = seconds(1);

  Shapes() : tokenizer_(std::make_shared<LlamaTokenizer>(test_weights())), kit_(tokenizer_, test_weights()->vocab()) {
    count_ = number_of("CHASQUI_SHAPES", 60);
    seed_ = static_cast<std::uint32_t>(number_of("CHASQUI_SEED", 1));
  }

  std::size_t bytes_of(std::size_t i) const {
    constexpr std::size_t kSizes[] = {200, 1000, 4000, 16'000, kSizeLimit<"grammar_bytes">};
    return kSizes[i % std::size(kSizes)];
  }

  template <class Work>
  void timed(const char* what, std::uint32_t seed, Duration most, Work work) {
    const Duration begun = thread_time();
    const std::int64_t before = most_resident_mib();
    work();
    const Duration took = thread_time() - begun;
    longest_ = std::max(longest_, took);
    EXPECT_LE(most_resident_mib() - before, 200) << what << " of seed " << seed;
    EXPECT_LE(took, most) << what << " of seed " << seed;
  }

  // Holds some tokens against the grammar, as a worker does.
  void use(const Grammar& grammar, std::uint32_t seed) {
    Result<SamplingPartsPtr> parts = SamplingPartsPtr();
    timed("compiling", seed, kMost, [&] { parts = kit_.prepare(SamplingParams{}, &grammar); });
    if (!parts) return;
    ++taken_;
    GrammarGate gate = std::move(static_cast<LlamaSamplingParts&>(**parts).grammar);
    timed("an answer", seed, kAnswerMost, [&] {
      const WorkBudget budget(milliseconds(250));
      for (Token step = 0; step < 8 && gate.present() && !budget.is_used_up(); ++step) {
        std::vector<Candidate> all(static_cast<std::size_t>(tokenizer_->vocabulary()));
        for (std::size_t i = 0; i < all.size(); ++i) all[i].token = static_cast<Token>(i);
        gate.filter(all);
        if (all.empty()) return;
        const Token token = all[(seed + static_cast<std::uint32_t>(step)) % all.size()].token;
        if (tokenizer_->is_end_of_generation(token)) return;
        gate.accept(token);
      }
    });
  }

  static std::int64_t most_resident_mib() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
  }

  void tell(const char* what) const {
    GTEST_LOG_(INFO) << count_ << ' ' << what << ", " << taken_ << " of them taken; the longest job took "
                     << 1e3 * to_seconds(longest_) << " ms; at most " << most_resident_mib() << " MiB resident";
  }

  std::shared_ptr<LlamaTokenizer> tokenizer_;
  SamplingKit kit_;
  std::size_t count_;
  std::uint32_t seed_;
  std::size_t taken_ = 0;
  Duration longest_{};
};

TEST_F(Shapes, SchemasOfAnswersKeepToTheirBudget) {
  for (std::size_t i = 0; i < count_; ++i) {
    const std::uint32_t seed = seed_ * 1'000'003 + static_cast<std::uint32_t>(i);
    const json::object schema = ShapeMaker(seed, bytes_of(i)).whole_schema();
    RequestDraft draft;
    timed("a schema", seed, kMost, [&] {
      if (!take_schema(schema, "json_schema", false, draft)) draft.grammar.reset();
    });
    if (draft.grammar) use(*draft.grammar, seed);
  }
  EXPECT_GT(taken_, 0u);
  tell("schemas of answers");
}

// As with --grammar-engine llama.
TEST_F(Shapes, ConvertedSchemasOfAnswersKeepToTheirBudget) {
  for (std::size_t i = 0; i < count_; ++i) {
    const std::uint32_t seed = seed_ * 1'000'003 + static_cast<std::uint32_t>(i);
    const json::object schema = ShapeMaker(seed, bytes_of(i)).whole_schema();
    Result<Grammar> grammar = Grammar();
    timed("a schema", seed, kMost, [&] { grammar = schema_constraint(schema, "json_schema"); });
    if (grammar) use(*grammar, seed);
  }
  EXPECT_GT(taken_, 0u);
  tell("schemas of answers, converted");
}

TEST_F(Shapes, SchemasOfToolsKeepToTheirBudget) {
  auto made = LlamaChatTemplate::make(test_weights(), "");
  ASSERT_TRUE(made);
  for (std::size_t i = 0; i < count_; ++i) {
    const std::uint32_t seed = seed_ * 2'000'003 + static_cast<std::uint32_t>(i);
    ShapeMaker maker(seed, 2 * bytes_of(i));
    json::array tools;
    Chat chat;
    chat.messages.emplace_back().role = "user";
    for (std::size_t n = 0; n <= i % 3; ++n) {
      const json::object parameters = maker.whole_schema();
      chat.tools.push_back({"tool" + std::to_string(n), "d", json::serialize(parameters)});
      tools.push_back(json::object{{"name", "t"}, {"input_schema", parameters}});
    }
    const json::object body{{"tools", std::move(tools)}};
    Fields fields(body);
    if (tools_within_limits(fields) == nullptr) continue;
    chat.tool_choice = i % 2 == 0 ? ToolChoice::automatic : ToolChoice::required;
    Result<PreparedChat> prepared = PreparedChat();
    timed("tools", seed, kMost + kTimeLimit<"template_seconds">, [&] { prepared = (*made)->prepare(chat); });
    if (!prepared || prepared->grammar.empty()) continue;
    Grammar grammar;
    grammar.text = prepared->grammar;
    use(grammar, seed);
  }
  EXPECT_GT(taken_, 0u);
  tell("lists of tools");
}

TEST_F(Shapes, GrammarsKeepToTheirBudget) {
  for (std::size_t i = 0; i < count_; ++i) {
    const std::uint32_t seed = seed_ * 3'000'003 + static_cast<std::uint32_t>(i);
    Grammar grammar;
    grammar.text = ShapeMaker(seed, bytes_of(i)).grammar();
    use(grammar, seed);
  }
  EXPECT_GT(taken_, 0u);
  tell("grammars");
}

}  // namespace
}  // namespace chasqui
