#include "api/openai/embeddings.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "api/body/generation_fields.h"
#include "api/body/prompt.h"
#include "api/body/prompt_forms.h"
#include "api/core/answer.h"
#include "api/core/embedding_service.h"
#include "api/core/entry.h"
#include "api/core/frontend.h"
#include "api/core/reading_time.h"
#include "base/json_writer.h"
#include "net/offload.h"

namespace chasqui {
namespace {

namespace json = boost::json;

constexpr std::int64_t kEuclidean = 2;
constexpr std::int64_t kNormMax = 100;
// One number of a vector as JSON, with its comma.
constexpr std::size_t kNumberBytes = 16;

// How the vectors of one request are wanted.
struct VectorForm {
  std::int64_t norm = kEuclidean;
  std::size_t length = 0;  // only the first so many numbers; 0: all
  bool base64 = false;
  std::string model;
  std::size_t tokens = 0;
};

// As much of a text as may fit, so that the tokenizer has not to read what is cut off anyway.
std::string_view beginning_of(const ServedModel& served, std::string_view text) {
  std::size_t size = served.model.tokenizer->piece_bytes_max() * static_cast<std::size_t>(served.limits.context);
  if (size == 0 || text.size() <= size) return text;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;  // not within a character
  return text.substr(0, size);
}

Result<void> add_input(const ServedModel& served, const json::value& given, const std::string& name, bool cut,
                       std::vector<std::vector<Token>>& out) {
  const auto value = prompt_text(given, name);
  if (!value) return value.error();
  std::vector<Token> tokens;
  if ((*value)->is_string()) {
    const std::string_view text = (*value)->get_string();
    auto read = tokenize_prompt(served, cut ? beginning_of(served, text) : text);
    if (!read) return Error{read.error().code, name + ": " + read.error().message, name};
    tokens = std::move(*read);
  } else {
    auto read = read_prompt(served, **value, name);
    if (!read) return read.error();
    tokens = std::move(*read);
  }
  const auto most = static_cast<std::size_t>(served.embeddings.config().tokens_max);
  if (cut && tokens.size() > most) tokens.resize(most);
  if (auto good = check_input(served, tokens, name); !good) return good.error();
  out.push_back(std::move(tokens));
  return {};
}

using Inputs = std::vector<std::vector<Token>>;

// Ollama's clients load a model by asking for nothing.
bool is_nothing(const json::value* input) {
  if (input == nullptr) return true;
  return input->is_string() ? input->get_string().empty() : input->is_array() && input->get_array().empty();
}

// One in any form of a prompt, or an array of those.
Result<Inputs> read_inputs(const ServedModel& served, const json::value& value, const std::string& name, bool cut) {
  std::vector<std::vector<Token>> out;
  if (is_one_prompt(value)) {
    if (auto added = add_input(served, value, name, cut, out); !added) return added.error();
    return out;
  }
  const json::array* list = value.if_array();
  if (list->size() > kInputsMax) {
    return invalid_field(name, name + " may hold at most " + std::to_string(kInputsMax) + " inputs");
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    auto added = add_input(served, (*list)[i], name + '[' + std::to_string(i) + ']', cut, out);
    if (!added) return added.error();
  }
  return out;
}

// `dimensions` and `embd_normalize`.
void read_form(const ServedModel& served, Fields& fields, VectorForm& form) {
  form.model = served.config.name;
  const std::int32_t length = served.model.info.embedding_length;
  if (const auto dimensions = fields.integer("dimensions")) {
    if (*dimensions < 1 || *dimensions > length) {
      fields.refuse("dimensions", "between 1 and " + std::to_string(length));
    }
    form.length = static_cast<std::size_t>(*dimensions);
  }
  form.norm = fields.integer("embd_normalize").value_or(served.config.defaults.embedding_norm);
  if (form.norm < -1 || form.norm > kNormMax) {
    fields.refuse("embd_normalize", "-1 (none), 0 (greatest number 32,760) or p up to 100 (p-norm)");
  }
  // What only generation has would be asked for in vain.
  refuse_unsupported(fields, {"stream", "messages", "tools", "max_tokens", "n_predict", "stop", "grammar", "logprobs"});
}

void shorten(Embedded& embedded, const VectorForm& form) {
  if (form.length > 0 && form.length < embedded.values.size()) embedded.values.resize(form.length);
  normalize(embedded.values, form.norm);
}

void write_numbers(JsonWriter& json, std::span<const float> values) {
  json.begin_array();
  for (const float value : values) json.number(value);
  json.end_array();
}

Result<std::string> write_openai(std::vector<Embedded> vectors, const VectorForm& form) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("object", "list");
  json.field("model", form.model);
  json.begin_array("data");
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    shorten(vectors[i], form);
    json.begin_object();
    json.field("object", "embedding");
    json.field("index", i);
    json.key("embedding");
    if (form.base64) {
      json.string(base64_of(vectors[i].values));
      json.field("encoding_format", "base64");
    } else {
      write_numbers(json, vectors[i].values);
    }
    json.end_object();
  }
  json.end_array();
  json.begin_object("usage");
  json.field("prompt_tokens", form.tokens);
  json.field("total_tokens", form.tokens);
  json.end_object();
  json.end_object();
  return out;
}

// [{"index":0,"embedding":[[…]]}]; vectors of tokens stay as the model makes them.
Result<std::string> write_native(std::vector<Embedded> vectors, const VectorForm& form, bool pooled) {
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    if (pooled) shorten(vectors[i], form);
    json.begin_object();
    json.field("index", i);
    json.begin_array("embedding");
    const std::size_t length = vectors[i].values.size() / vectors[i].rows;
    for (std::size_t row = 0; row < vectors[i].rows; ++row) {
      write_numbers(json, std::span<const float>(vectors[i].values).subspan(row * length, length));
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
  return out;
}

Result<std::string> write_ollama(std::vector<Embedded> vectors, const VectorForm& form, Duration took) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("model", form.model);
  json.begin_array("embeddings");
  for (Embedded& vector : vectors) {
    shorten(vector, form);
    write_numbers(json, vector.values);
  }
  json.end_array();
  json.field("total_duration", std::chrono::duration_cast<std::chrono::nanoseconds>(took).count());
  json.field("load_duration", 0);
  json.field("prompt_eval_count", form.tokens);
  json.end_object();
  return out;
}

// Routes whose answer has one vector for each input.
Result<void> check_pooling(const ServedModel& served, bool tokens_too = false) {
  const Pooling pooling = served.embeddings.config().pooling;
  if (pooling == Pooling::rank) {
    return invalid_field("model", "this server ranks documents (--pooling rank): use /v1/rerank or /v1/score");
  }
  if (pooling == Pooling::none && !tokens_too) {
    return invalid_field("model",
                         "this server makes a vector of each token (--pooling none): use /embeddings, or start it with "
                         "--pooling mean, cls or last");
  }
  return {};
}

// What it returns as an error, its caller notes.
Handled tell_vectors(Call call, PrepareVectors prepare, RequestNotePtr note) {
  const Result<Permit> permit = enter(call);
  if (!permit) co_return permit.error();
  net::OffloadTerms terms = reading_terms(call);
  auto read = [&served = call.served, prepare, body = std::move(call.body)] { return prepare(served, body); };
  Result<VectorJob> job = co_await call.frontend.offload.run(std::move(read), std::move(terms));
  if (call.exchange.client_gone()) co_return Result<void>();
  if (!job) co_return job.error();
  call.exchange.body_was_read();
  auto inputs = std::move(job->inputs);
  AdapterSetPtr adapters = call.served.adapters.list()->standing();
  const TimePoint arrival = call.frontend.clock.now();
  Result<EmbeddedInputs> embedded(EmbeddedInputs{});
  if (!inputs.empty()) {
    embedded = co_await call.served.embeddings.embed(call.exchange, call.caller.tenant.id, std::move(adapters),
                                                     std::move(inputs));
  }
  if (embedded && note) note->computed(arrival, embedded->usage, call.exchange.client_gone());
  if (call.exchange.client_gone()) co_return Result<void>();
  if (!embedded) co_return embedded.error();
  std::size_t numbers = 0;
  for (const Embedded& one : embedded->vectors) numbers += one.values.size();
  auto tell = [write = std::move(job->write), values = std::move(embedded->vectors)]() mutable {
    return write(std::move(values));
  };
  net::OffloadTerms telling;
  telling.owner = call.caller.tenant.id;
  telling.can_wait = writing_can_wait(numbers * kNumberBytes);
  Result<std::string> body = co_await call.frontend.offload.run(std::move(tell), std::move(telling));
  if (!body) co_return body.error();
  co_await respond_json(call.exchange, std::move(*body));
  co_return Result<void>();
}

}  // namespace

std::size_t VectorJob::tokens() const {
  std::size_t sum = 0;
  for (const auto& input : inputs) sum += input.size();
  return sum;
}

Result<void> check_input(const ServedModel& served, const std::vector<Token>& tokens, const std::string& name) {
  const auto most = static_cast<std::size_t>(served.embeddings.config().tokens_max);
  if (tokens.empty()) return invalid_field(name, name + " must not be empty");
  if (tokens.size() <= most) return {};
  return Error{ErrorCode::context_too_long,
               name + " has " + std::to_string(tokens.size()) + " tokens; at most " + std::to_string(most) + " fit",
               name};
}

void normalize(std::span<float> values, std::int64_t norm) {
  constexpr double kGreatest = 32760;
  if (norm < 0) return;
  double sum = 0;
  for (const float value : values) {
    const double size = std::abs(static_cast<double>(value));
    sum = norm == 0 ? std::max(sum, size) : sum + std::pow(size, static_cast<double>(norm));
  }
  if (sum <= 0) return;
  const double factor = norm == 0 ? kGreatest / sum : 1 / std::pow(sum, 1.0 / static_cast<double>(norm));
  for (float& value : values) value = static_cast<float>(static_cast<double>(value) * factor);
}

std::string base64_of(std::span<const float> values) {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes(values.size_bytes(), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (std::size_t k = 0; k < 4; ++k) out += k <= count ? kLetters[bits >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

Result<VectorJob> prepare_openai_embeddings(const ServedModel& served, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  if (auto good = check_pooling(served); !good) return good.error();
  Fields fields(*object);
  VectorForm form;
  read_form(served, fields, form);
  const auto encoding = fields.string("encoding_format");
  if (encoding && *encoding != "float" && *encoding != "base64") fields.refuse("encoding_format", "float or base64");
  form.base64 = encoding == "base64";
  const std::string name = fields.any("input") == nullptr && fields.any("content") != nullptr ? "content" : "input";
  const json::value* input = fields.any(name);
  if (input == nullptr) fields.refuse("input", "a string, an array of token ids, or an array of those");
  if (!fields.ok()) return fields.error();
  auto inputs = read_inputs(served, *input, name, false);
  if (!inputs) return inputs.error();
  VectorJob job{std::move(*inputs), {}};
  form.tokens = job.tokens();
  job.write = [form](std::vector<Embedded> vectors) { return write_openai(std::move(vectors), form); };
  return job;
}

Result<VectorJob> prepare_native_embeddings(const ServedModel& served, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  if (auto good = check_pooling(served, true); !good) return good.error();
  Fields fields(*object);
  VectorForm form;
  read_form(served, fields, form);
  const std::string name = fields.any("content") == nullptr && fields.any("input") != nullptr ? "input" : "content";
  const json::value* input = fields.any(name);
  if (input == nullptr) fields.refuse("content", "a string, an array of token ids, or an array of those");
  if (!fields.ok()) return fields.error();
  auto inputs = read_inputs(served, *input, name, false);
  if (!inputs) return inputs.error();
  const bool pooled = served.embeddings.config().pooling != Pooling::none;
  std::size_t tokens = 0;
  for (const auto& one : *inputs) tokens += one.size();
  const std::size_t numbers = tokens * static_cast<std::size_t>(served.model.info.embedding_length);
  if (!pooled && numbers > kSizeLimit<"whole_answer_bytes"> / kNumberBytes) {
    return invalid_field(name, name + " would be answered by " + std::to_string(numbers) +
                                   " numbers, one vector for each token; at most " +
                                   std::to_string(kSizeLimit<"whole_answer_bytes"> / kNumberBytes) + " are told");
  }
  return VectorJob{std::move(*inputs), [form, pooled](std::vector<Embedded> vectors) {
                     return write_native(std::move(vectors), form, pooled);
                   }};
}

Result<VectorJob> prepare_ollama_embed(const ServedModel& served, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  if (auto good = check_pooling(served); !good) return good.error();
  Fields fields(*object);
  VectorForm form;
  read_form(served, fields, form);
  fields.object("options");
  const bool cut = fields.boolean("truncate").value_or(true);
  const json::value* input = fields.any("input");
  if (!fields.ok()) return fields.error();
  const TimePoint start = served.clock.now();
  auto inputs = is_nothing(input) ? Result<Inputs>(Inputs()) : read_inputs(served, *input, "input", cut);
  if (!inputs) return inputs.error();
  VectorJob job{std::move(*inputs), {}};
  form.tokens = job.tokens();
  job.write = [form, start, &clock = served.clock](std::vector<Embedded> vectors) {
    return write_ollama(std::move(vectors), form, clock.now() - start);
  };
  return job;
}

// The older route: one prompt, one vector, as the model makes it.
Result<VectorJob> prepare_ollama_embeddings(const ServedModel& served, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  if (auto good = check_pooling(served); !good) return good.error();
  Fields fields(*object);
  fields.object("options");
  const auto prompt = fields.string("prompt").value_or("");
  if (!fields.ok()) return fields.error();
  auto inputs = prompt.empty() ? Result<Inputs>(Inputs()) : read_inputs(served, json::value(prompt), "prompt", true);
  if (!inputs) return inputs.error();
  return VectorJob{std::move(*inputs), [](const std::vector<Embedded>& vectors) -> Result<std::string> {
                     std::string out = "{\"embedding\":";
                     JsonWriter json(out);
                     write_numbers(json, vectors.empty() ? std::span<const float>() : vectors.front().values);
                     return out + '}';
                   }};
}

Handled handle_vectors(Call call, PrepareVectors prepare, RequestKind kind) {
  const RequestNotePtr note = open_note(call);
  if (note) note->is_for(kind);
  Handled telling = tell_vectors(std::move(call), prepare, note);
  Result<void> told = co_await std::move(telling);
  if (!told) note_refused(note, told.error());
  co_return told;
}

}  // namespace chasqui
