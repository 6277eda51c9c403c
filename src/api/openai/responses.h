// OpenAI's newer dialect: POST /v1/responses, which remembers conversations, and GET, DELETE, POST …/cancel and
// GET …/input_items of what it remembers. A body is read in the offload pool, the conversation that it goes on with is
// found on the loop, and the two are joined and rendered in the pool again. The reading is pure; everything else
// belongs to the loop.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <boost/json.hpp>

#include "api/body/fields.h"
#include "api/body/prompt.h"
#include "api/core/answer.h"
#include "api/core/served_model.h"
#include "api/openai/response_store.h"

namespace chasqui {

// A body, read.
struct ResponseAsk {
  Chat chat;                 // without what came before; its instructions are not among the messages
  std::string instructions;  // hold for this response only
  RequestDraft draft;
  ReasoningWish reasoning;
  bool stream = false;
  bool store = true;
  std::optional<std::string> previous;  // previous_response_id
  ResponseInput input;                  // empty where it is not stored
  std::string echo;  // members of the response object that repeat the request, each with a comma before it
  // Items of responses before that the input names by their ids, sorted, each once; all of them short. Where there are
  // some, nothing but `unread` is set.
  std::vector<std::string> references;
  boost::json::object unread;
};
Result<ResponseAsk> read_response_ask(const ServedModel& served, const Caller& caller, std::string body);

// What `unread` was, with the items that it named in their places: those of `bodies`, which are response objects.
using ResponseBodies = std::vector<std::shared_ptr<const std::string>>;
Result<ResponseAsk> read_response_again(const ServedModel& served, const Caller& caller, boost::json::object unread,
                                        const ResponseBodies& bodies);

// What its writer needs to know of one response.
struct ResponseHead {
  std::string id;
  std::string model;
  std::int64_t created = 0;
  std::string echo;
  std::uint32_t tenant = 0;
  bool store = true;
  ConversationPtr before;  // the conversation that is answered
  ResponseInputPtr input;
};

// Writes the answer, and keeps it in `store` as it ends, and, by what `on_submitted` becomes, as it begins. From then
// on the store alone has what the client said: thousands of requests may wait, and no limit but the store's counts
// that.
std::unique_ptr<AnswerWriter> make_response_writer(ResponseHead head, RequestId request, AnswerFormatPtr format,
                                                   ResponseStore& store, const Clock& clock,
                                                   std::function<void()>& on_submitted);

// Null: no model has a stored response of this tenant with this id.
ServedModel* model_of_response(const ModelTable& models, std::uint32_t tenant, const std::string& id);

Handled handle_response(Call call);
Handled handle_response_tokens(Call call);
Handled handle_input_items(Call call);

// Commands that need nothing from the pool.
using ResponseCommand = Result<std::string> (*)(ServedModel&, const Caller&, const net::HttpExchange&);
Handled handle_response_command(Call call, ResponseCommand command);
Result<std::string> show_response(ServedModel& served, const Caller& caller, const net::HttpExchange& exchange);
Result<std::string> delete_response(ServedModel& served, const Caller& caller, const net::HttpExchange& exchange);
Result<std::string> cancel_response(ServedModel& served, const Caller& caller, const net::HttpExchange& exchange);

}  // namespace chasqui
