#include "api/body/model_choice.h"

#include <memory>

#include "api/body/fields.h"
#include "api/core/entry.h"
#include "net/offload.h"

namespace chasqui {
namespace {

// Offload pool. Empty where the body names none; a list of adapters, for one, does not.
Result<std::string> named_model(const std::string& body) {
  auto value = parse_json(body);
  if (!value) return value.error();
  if (!value->is_object()) return std::string();
  const boost::json::value* const model = value->get_object().if_contains("model");
  if (model == nullptr || model->is_null()) return std::string();
  if (!model->is_string()) return invalid_field("model", "model must be a string");
  return std::string(model->get_string());
}

}  // namespace

net::Awaitable<Result<const ModelEntry*>> choose_model(const ModelTable& models, Frontend& frontend, Caller caller,
                                                       std::string& body, const ModelEntry& otherwise) {
  if (!models.has_choice() || body.empty()) co_return &otherwise;
  // Owned by the job as well: the client may leave, and its request end, while the pool still reads.
  const auto owned = std::make_shared<std::string>(std::move(body));
  auto work = [owned] { return named_model(*owned); };
  net::OffloadTerms terms = reading_terms(caller, *owned);
  Result<std::string> name = co_await frontend.offload.run(std::move(work), std::move(terms));
  if (!name) co_return name.error();
  body = std::move(*owned);
  if (name->empty()) co_return &otherwise;
  co_return models.find(*name);
}

}  // namespace chasqui
