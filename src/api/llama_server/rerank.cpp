#include "api/llama_server/rerank.h"

#include <algorithm>
#include <numeric>

#include "api/body/prompt.h"
#include "api/body/prompt_forms.h"
#include "api/core/embedding_service.h"
#include "api/core/served_model.h"
#include "base/json_writer.h"
#include "base/limits.h"
#include "base/random_id.h"

namespace chasqui {
namespace {

namespace json = boost::json;

// What both routes tell beside scores.
struct ScoreHead {
  std::string model;
  std::int64_t created = 0;
  std::size_t tokens = 0;
};

// How the ranking of one request is told.
struct RankForm {
  ScoreHead head;
  bool tei = false;
  bool with_text = false;
  std::size_t top = 0;
  std::vector<std::string> documents;
};

Result<void> check_ranking(const ServedModel& served) {
  if (served.embeddings.config().pooling == Pooling::rank) return {};
  if (served.model.info.ranks) {
    return invalid_field("model", "this server was started with another --pooling than rank, and so does not rank");
  }
  return invalid_field("model", "the model " + served.config.name +
                                    " has no head for ranking, so that this server cannot rank documents");
}

// Strings, or objects with `text` where a client sends those; a single string where `one` is allowed.
std::vector<std::string> read_texts(Fields& fields, std::string_view name, bool one) {
  std::vector<std::string> out;
  const json::value* value = fields.any(name);
  if (value != nullptr && value->is_string() && one) {
    out.emplace_back(value->get_string());
    return out;
  }
  const json::array* array = value != nullptr ? value->if_array() : nullptr;
  if (array == nullptr || array->empty() || array->size() > kInputsMax) {
    fields.refuse(name, "an array of 1 to " + std::to_string(kInputsMax) + " strings");
    return out;
  }
  for (const json::value& item : *array) {
    const json::value* text = item.is_object() ? item.get_object().if_contains("text") : &item;
    if (text == nullptr || !text->is_string()) {
      fields.refuse(name, "an array of strings, or of objects with text");
      return out;
    }
    out.emplace_back(text->get_string());
  }
  return out;
}

// Each is read with its query before it, so that a short body may mean a lot of text.
Result<void> check_pair_bytes(std::size_t bytes, const std::string& name) {
  if (bytes <= kSizeLimit<"rank_bytes">) return {};
  return invalid_field(name, name + " may have at most " + std::to_string(kSizeLimit<"rank_bytes">) +
                                 " bytes, the query counted with each of them; these have " + std::to_string(bytes));
}

Result<void> add_pair(const ServedModel& served, std::string_view query, std::string_view document,
                      const std::string& name, VectorJob& job) {
  // The tokenizer must not read what cannot fit.
  for (const std::string_view text : {query, document}) {
    if (auto fits = check_prompt_bytes(served, text.size()); !fits)
      return Error{fits.error().code, fits.error().message, name};
  }
  auto tokens = rank_input(served.model.info, *served.model.tokenizer, query, document);
  if (auto good = check_input(served, tokens, name); !good) return good.error();
  job.inputs.push_back(std::move(tokens));
  return {};
}

void write_tokens_used(JsonWriter& json, std::size_t tokens) {
  json.begin_object("usage");
  json.field("prompt_tokens", tokens);
  json.field("total_tokens", tokens);
  json.end_object();
}

void write_ranked(JsonWriter& json, const RankForm& form, const std::vector<Embedded>& scores) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&scores](std::size_t i) { return scores[i].values.front(); });
  order.resize(std::min(order.size(), form.top));
  json.begin_array();
  for (const std::size_t i : order) {
    json.begin_object();
    json.field("index", i);
    json.field(form.tei ? "score" : "relevance_score", scores[i].values.front());
    if (form.with_text && form.tei) json.field("text", form.documents[i]);
    if (form.with_text && !form.tei) {
      json.begin_object("document");
      json.field("text", form.documents[i]);
      json.end_object();
    }
    json.end_object();
  }
  json.end_array();
}

Result<std::string> write_rerank(const std::vector<Embedded>& scores, const RankForm& form) {
  std::string out;
  JsonWriter json(out);
  if (form.tei) {
    write_ranked(json, form, scores);
    return out;
  }
  json.begin_object();
  json.field("model", form.head.model);
  json.field("object", "list");
  write_tokens_used(json, form.head.tokens);
  json.key("results");
  write_ranked(json, form, scores);
  json.end_object();
  return out;
}

Result<std::string> write_scores(const std::vector<Embedded>& scores, const ScoreHead& head) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("id", random_id("score-"));
  json.field("object", "list");
  json.field("created", head.created);
  json.field("model", head.model);
  json.begin_array("data");
  for (std::size_t i = 0; i < scores.size(); ++i) {
    json.begin_object();
    json.field("index", i);
    json.field("object", "score");
    json.field("score", scores[i].values.front());
    json.end_object();
  }
  json.end_array();
  write_tokens_used(json, head.tokens);
  json.end_object();
  return out;
}

void append(std::vector<Token>& out, const std::vector<Token>& tokens) {
  out.insert(out.end(), tokens.begin(), tokens.end());
}

// In one pass, so that a question about "{document}" stays one.
std::string filled(std::string_view source, std::string_view query, std::string_view document) {
  constexpr std::string_view kQuery = "{query}";
  constexpr std::string_view kDocument = "{document}";
  std::string out;
  while (!source.empty()) {
    if (source.starts_with(kQuery)) {
      out += query;
      source.remove_prefix(kQuery.size());
    } else if (source.starts_with(kDocument)) {
      out += document;
      source.remove_prefix(kDocument.size());
    } else {
      out += source.front();
      source.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace

std::vector<Token> rank_input(const ModelInfo& info, const Tokenizer& tokenizer, std::string_view query,
                              std::string_view document) {
  if (!info.rank_template.empty()) {
    return tokenizer.tokenize(filled(info.rank_template, query, document), AddSpecial::no, ParseSpecial::yes);
  }
  const Token end = info.eos >= 0 ? info.eos : info.separator;
  std::vector<Token> out;
  if (info.adds_bos && info.bos >= 0) out.push_back(info.bos);
  append(out, tokenizer.tokenize(query, AddSpecial::no, ParseSpecial::no));
  if (info.adds_eos && end >= 0) out.push_back(end);
  if (info.separator >= 0) out.push_back(info.separator);
  append(out, tokenizer.tokenize(document, AddSpecial::no, ParseSpecial::no));
  if (info.adds_eos && end >= 0) out.push_back(end);
  return out;
}

Result<VectorJob> prepare_rerank(const ServedModel& served, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  if (auto good = check_ranking(served); !good) return good.error();
  Fields fields(*object);
  RankForm form;
  const auto query = fields.string("query");
  if (!query || query->empty()) fields.refuse("query", "a string that is not empty");
  form.tei = fields.any("texts") != nullptr;
  const std::string name = form.tei ? "texts" : "documents";
  form.documents = read_texts(fields, name, false);
  const auto top = fields.integer("top_n");
  if (top && *top < 1) fields.refuse("top_n", "at least 1");
  form.top = static_cast<std::size_t>(top.value_or(static_cast<std::int64_t>(form.documents.size())));
  const bool returns = fields.boolean("return_documents").value_or(false);
  form.with_text = fields.boolean("return_text").value_or(returns);
  if (!fields.ok()) return fields.error();
  std::size_t bytes = query->size() * form.documents.size();
  for (const std::string& document : form.documents) bytes += document.size();
  if (auto fits = check_pair_bytes(bytes, name); !fits) return fits.error();
  VectorJob job;
  for (std::size_t i = 0; i < form.documents.size(); ++i) {
    auto added = add_pair(served, *query, form.documents[i], name + '[' + std::to_string(i) + ']', job);
    if (!added) return added.error();
  }
  form.head = {served.config.name, served.clock.unix_seconds(), job.tokens()};
  job.write = [form = std::move(form)](const std::vector<Embedded>& scores) { return write_rerank(scores, form); };
  return job;
}

Result<VectorJob> prepare_score(const ServedModel& served, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  if (auto good = check_ranking(served); !good) return good.error();
  Fields fields(*object);
  const auto first = read_texts(fields, "text_1", true);
  const auto second = read_texts(fields, "text_2", true);
  if (fields.ok() && first.size() != 1 && first.size() != second.size()) {
    fields.refuse("text_1", "one text, or as many as text_2");
  }
  if (!fields.ok()) return fields.error();
  const auto query_of = [&first](std::size_t i) -> const std::string& {
    return first.size() == 1 ? first[0] : first[i];
  };
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < second.size(); ++i) bytes += query_of(i).size() + second[i].size();
  if (auto fits = check_pair_bytes(bytes, "text_2"); !fits) return fits.error();
  VectorJob job;
  for (std::size_t i = 0; i < second.size(); ++i) {
    auto added = add_pair(served, query_of(i), second[i], "text_2[" + std::to_string(i) + ']', job);
    if (!added) return added.error();
  }
  const ScoreHead head{served.config.name, served.clock.unix_seconds(), job.tokens()};
  job.write = [head](const std::vector<Embedded>& scores) { return write_scores(scores, head); };
  return job;
}

}  // namespace chasqui
