#include "api/body/model_choice.h"

#include <memory>

#include "api/body/fields.h"
#include "api/core/entry.h"
#include "net/offload.h"

namespace chasqui {
namespace {

struct Wish {
  std::string model{};     // empty where the body names none; a list of adapters, for one, does not
  std::string previous{};  // previous_response_id
  bool stream = false;
};

// Offload pool. `names_count`: a model that is not there is an error; elsewhere clients send names of other servers'.
Result<Wish> read_wish(const std::string& body, bool names_count) {
  auto value = parse_json(body);
  if (!value) return value.error();
  Wish wish;
  if (!value->is_object()) return wish;
  const boost::json::object& object = value->get_object();
  const boost::json::value* const stream = object.if_contains("stream");
  wish.stream = stream != nullptr && stream->is_bool() && stream->get_bool();
  const boost::json::value* const previous = object.if_contains("previous_response_id");
  // The loop makes a key of it for each model, and no response has a longer one.
  const bool may_be_known = previous != nullptr && previous->is_string() && is_short_id(previous->get_string());
  if (may_be_known) wish.previous = std::string(previous->get_string());
  const boost::json::value* const model = object.if_contains("model");
  if (model == nullptr || model->is_null()) return wish;
  if (!model->is_string()) return invalid_field("model", "model must be a string");
  if (may_name_model(model->get_string())) {
    wish.model = std::string(model->get_string());
  } else if (names_count) {
    return no_model_of_long_name();
  }
  return wish;
}

}  // namespace

net::Awaitable<Result<ModelChoice>> choose_model(const ModelTable& models, Frontend& frontend, Caller caller,
                                                 std::string& body, const ModelEntry& otherwise,
                                                 std::function<bool()> gone) {
  const bool looks = models.reads_names() || models.may_wait();
  if (!looks || body.empty()) co_return ModelChoice{&otherwise};
  // Owned by the job as well: the client may leave, and its request end, while the pool still reads.
  const auto owned = std::make_shared<std::string>(std::move(body));
  auto work = [owned, names_count = models.has_choice()] { return read_wish(*owned, names_count); };
  net::OffloadTerms terms = reading_terms(caller, *owned);
  terms.gone = std::move(gone);
  Result<Wish> wish = co_await frontend.offload.run(std::move(work), std::move(terms));
  if (!wish) co_return wish.error();
  body = std::move(*owned);
  if (wish->model.empty()) co_return ModelChoice{&otherwise, wish->stream, wish->previous};
  const Result<const ModelEntry*> entry = models.find(wish->model);
  if (!entry) co_return entry.error();
  co_return ModelChoice{*entry, wish->stream, wish->previous};
}

}  // namespace chasqui
